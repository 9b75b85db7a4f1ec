"""A small matrix as a table of plain text."""

import pytest
import torch

from drawings.numbers import show_numbers


def test_names_down_and_across(capsys: pytest.CaptureFixture[str]) -> None:
    show_numbers(torch.tensor([[1.0, -2.25], [0.5, 10.0]]), ["a", "bank"], ["river", "x"], title="cosines", digits=2)
    assert capsys.readouterr().out.splitlines() == [
        "cosines",
        "      river      x",
        "a      1.00  -2.25",
        "bank   0.50  10.00",
        "",
    ]


def test_numbers_alone_however_many(capsys: pytest.CaptureFixture[str]) -> None:
    show_numbers(torch.zeros(2, 60))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3  # two rows, and a blank line
    assert lines[0].split() == ["0"] + ["0.000"] * 60


def test_what_cannot_be_printed_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_numbers(torch.zeros(1, 1), ["\x1b[31m"], ["a\nb"])
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "a↵b" in told


@pytest.mark.parametrize(("rows", "across"), [(["a"], None), (None, ["a", "b", "c"])])
def test_names_have_to_fit(rows, across) -> None:
    with pytest.raises(ValueError):
        show_numbers(torch.zeros(2, 2), rows, across)
