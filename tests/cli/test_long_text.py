"""The long text of `regard map`: what is refused before it is read, and where its matrix comes from."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import regard
from regard.cli.long_text import LongText, read_file_argument, trace_of_open_option
from regard.errors import RegardError
from tests.support import RIVER

FILE, SAVED = Path("text.txt"), Path("a.safetensors")


@pytest.mark.parametrize(
    ("text", "saved", "says"),
    [
        (LongText(), False, "no file given: regard map FILE --layer N"),
        (LongText(FILE, opened=SAVED), False, "--open and FILE: the saved trace is looked at as it is"),
        (LongText(window=8, opened=SAVED), False, "--open and --window"),
        (LongText(model="tiny", opened=SAVED), False, "--open and --model"),
        (LongText(FILE, stride=4), False, "--stride needs --window"),
        (LongText(FILE, window=8), True, "--save: windows are looked at one after another"),
    ],
)
def test_what_is_refused(text: LongText, saved: bool, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        text.check(3, saved=saved)


def test_windows_need_a_layer() -> None:
    with pytest.raises(RegardError, match="--window needs --layer"):
        LongText(FILE, window=8).check(None, saved=False)
    LongText(FILE).check(None, saved=True)


def test_a_mark_of_the_encoding_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbfa bank")
    assert read_file_argument(tmp_path / "text.txt") == LongText(tmp_path / "text.txt").read() == "a bank"
    assert LongText(opened=SAVED).read() == ""


def test_one_matrix_of_a_file_of_windows_and_of_a_saved_trace(minilm, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("regard.models.load.load", lambda _name, **_: minilm)
    console = Console(file=io.StringIO())
    (tmp_path / "text.txt").write_text(RIVER, encoding="utf-8")
    whole = LongText(tmp_path / "text.txt")
    found = whole.matrix(whole.read(), -1, 2, top=3, far=5, console=console)
    (trace,) = found.traces
    assert found.why == ""
    assert list(trace.attention.kept) == [5]
    assert (found.layer, found.head, len(found.receivers)) == (5, 2, 3)
    trace.save(tmp_path / "a.safetensors")
    again = LongText(opened=tmp_path / "a.safetensors").matrix("", 5, 2, top=3, far=5, console=console)
    assert [each.text for each in again.traces] == [RIVER]
    assert again.receivers == found.receivers
    one = LongText(whole.file, window=100).matrix(RIVER, 5, 2, top=3, far=5, console=console)
    assert len(one.traces) == 0
    assert [each.place for each in one.receivers] == [each.place for each in found.receivers]
    best = whole.matrix(RIVER, None, None, top=3, far=5, console=console)
    assert len(best.traces[0].attention) == 6
    assert best.why.startswith(f"Layer {best.layer} was chosen ")
    assert best.layer in range(6)
    with pytest.raises(RegardError, match="layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"):
        whole.matrix(RIVER, 6, None, top=3, far=5, console=console)


def test_a_saved_trace_is_one(bank, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    regard.save([bank[0]], file)
    assert trace_of_open_option(file).text == RIVER
    regard.save(list(bank), file)
    with pytest.raises(RegardError, match="holds 2 traces, map looks at one: save that alone"):
        trace_of_open_option(file)
