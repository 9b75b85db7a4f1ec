from regard.trace.status import Status, exactness
from regard.views.terminal.one_screen import bar, ending, heights, model_line, resampled
from tests.support.terminal import printed_parts


def test_bars_are_as_long_as_their_values() -> None:
    assert [bar(value, 1.0, 8).plain for value in (0.0, 0.5, 1.0, 2.0)] == ["", "████", "████████", "████████"]
    assert bar(1 / 16, 1.0, 8).plain == "▌"
    assert bar(1.0, 0.0, 8).plain == bar(float("nan"), 1.0, 8).plain == bar(1.0, 1.0, 0).plain == ""


def test_heights_and_their_largest_parts() -> None:
    assert heights([0.0, 0.5, 1.0, 9.0, -1.0], 1.0) == " ▄██ "
    assert resampled([1.0, 5.0, 2.0, 3.0], 2) == [5.0, 3.0]
    assert resampled([1.0, 2.0], 9) == [1.0, 2.0]


def test_the_last_lines(bank) -> None:
    status: Status = bank[0].status
    assert model_line([status], 1.25) == f"{status.model} ({status.kernels[0]}): {exactness([status])}; 1.2 s in all"
    out = printed_parts([ending([status, status], "--all", notes=["a note"])])
    assert out.count("note: a note") == 1
    assert out.rstrip().endswith("more: --all")
