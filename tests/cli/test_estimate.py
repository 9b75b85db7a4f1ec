import io
from itertools import count

from rich.console import Console

from regard.cli.estimate import Estimate, progress_time_in_words


def told(steps: list[tuple[float, float]]) -> list[str]:
    """What is said at these (seconds, share)."""
    now, said = [0.0], []
    estimate = Estimate(said.append, "patching", clock=lambda: now[0])
    for now[0], share in steps:
        estimate.at(share)
    return said


def test_it_is_said_once_and_only_of_long_work() -> None:
    assert told([(1.0, 0.0), (5.0, 0.1), (9.0, 0.2), (13.0, 0.3)]) == ["patching: about 41 s in all"]
    assert told([(1.0, 0.0), (5.0, 0.09)]) == []  # too early
    assert told([(1.0, 0.5), (2.0, 0.6)]) == []  # too short
    assert told([(9.0, 0.5), (99.0, 1.0)]) == []  # too late


def test_what_is_made_ready_first_and_reports_that_come_at_once_do_not_count() -> None:
    batches = [(13.9, 0.007), (14.0, 0.18), (18.5, 0.19), (18.5, 0.42), (21.6, 0.43)]  # of why, which took 30 s
    assert told(batches) == ["patching: about 39 s in all"]


def test_parts_add_up() -> None:
    now, said = [0.0], []
    estimate = Estimate(said.append, "mapping", clock=lambda: now[0])
    for now[0] in (2.0, 4.0, 6.0):
        estimate.add(0.05)
    assert said == ["mapping: about 40 s in all"]


def test_one_pass_is_counted_by_layers_and_said_on_a_console(minilm) -> None:
    file, seconds = io.StringIO(), count(0, 9)
    estimate = Estimate(Console(file=file), "tracing", clock=lambda: next(seconds))
    with estimate.one_pass(minilm.model):
        minilm.trace("A man is fishing")
    assert file.getvalue() == "tracing: about 54 s in all\n"  # a layer in 9 s


def test_durations_as_one_says_them() -> None:
    assert [progress_time_in_words(each) for each in (12.4, 89.0, 91.0, 5000.0, 6000.0)] == [
        "12 s",
        "89 s",
        "2 min",
        "83 min",
        "1.7 hours",
    ]
