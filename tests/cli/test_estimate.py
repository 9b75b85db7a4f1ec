import io

from rich.console import Console

from regard.cli.estimate import Estimate, progress_time_in_words
from tests.support.own_models import opened


def told(steps: list[tuple[float, float]]) -> list[str]:
    """What is said at these (seconds, share)."""
    now, said = [0.0], []
    estimate = Estimate(said.append, "patching", clock=lambda: now[0])
    for now[0], share in steps:
        estimate.at(share)
    return said


def test_it_is_said_once_and_only_of_long_work() -> None:
    assert told([(0.5, 0.01), (9.0, 0.2)]) == ["patching: about 45 s in all"]
    assert told([(9.0, 0.01), (9.5, 0.09)]) == []  # the first part may take longest, as what is compiled does
    assert told([(1.5, 0.5), (3.0, 0.6)]) == []
    assert told([(0.9, 0.9), (1.0, 1.0)]) == []
    assert told([(2.0, 0.0)]) == []


def test_parts_add_up() -> None:
    now, said = [0.0], []
    estimate = Estimate(said.append, "mapping", clock=lambda: now[0])
    for now[0] in (2.0, 4.0, 6.0):
        estimate.add(0.05)
    assert said == ["mapping: about 40 s in all"]


def test_one_pass_is_counted_by_layers_and_said_on_a_console() -> None:
    model, file, seconds = opened("gpt"), io.StringIO(), iter([0.0, 9.0, 18.0, 27.0])
    estimate = Estimate(Console(file=file), "tracing", clock=lambda: next(seconds))
    with estimate.one_pass(model.model):
        model.trace("A man is fishing")
    assert file.getvalue() == "tracing: about 18 s in all\n"  # half of both layers in 9 s


def test_durations_as_one_says_them() -> None:
    assert [progress_time_in_words(each) for each in (12.4, 89.0, 91.0, 5000.0, 6000.0)] == [
        "12 s",
        "89 s",
        "2 min",
        "83 min",
        "1.7 hours",
    ]
