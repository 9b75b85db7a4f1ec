"""`regard map` as a person runs it, in this process, with the model that is loaded already."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.cli.main import main
from regard.cli.verb import verb_of_question
from regard.errors import RegardError
from regard.explain.weights.specific_weights import most_specific_weight, specific_weights, text_choice
from regard.explain.wording import number
from regard.models.source import Source
from regard.questions.map.query import MapQuery, read_file_argument
from tests.support import RIVER, ROOT, SHARED, run_all_in_process

BOOK = SHARED / "data" / "moby_dick" / "moby_dick.txt"
TEXT = (
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of the "
    "world.\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT * 3, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(folder: Path, minilm, monkeypatch):
    """The verb itself, in this process."""
    monkeypatch.setattr("regard.models.load.load", lambda _name, **_: minilm)
    return verb_of_question("map", MapQuery)


def test_the_main_job(regard_command, minilm, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\ufeff" + TEXT * 3, encoding="utf-8")
    result = regard_command(
        "map", "text.txt", "--layer", "3", "--head", "2", "--top", "4", "--far", "30", "--figure", "a.png",
        "--json", "a.json", "--save", "a.safetensors",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "In layer 3, tokens attend" in result.stdout
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.png", "a.safetensors", "text.txt"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    saved = regard.open(tmp_path / "a.safetensors")
    assert saved.text == TEXT * 3  # without the mark of its encoding
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (data["format"], data["version"], data["layer"], data["head"]) == ("regard map", 1, 3, 2)
    dense = minilm.trace(TEXT * 3, layers=[3]).attention[3][2]
    assert data["tokens"] == dense.shape[0] == len(data["picture"])
    torch.testing.assert_close(torch.tensor(data["picture"]), dense, atol=1e-6, rtol=0)
    assert data["receivers"][0]["received"] == pytest.approx(float(dense.sum(0).max()), rel=1e-4)
    assert all(pair["distance"] > 30 for pair in data["pairs"])
    assert len(data["pairs"]) == len(data["receivers"]) == 4
    first = data["pairs"][0]
    assert first["weight"] == pytest.approx(float(dense[first["query"]["token"], first["key"]["token"]]), rel=1e-4)
    assert number(first["weight"]) in result.stdout
    assert "• " + data["findings"][0] in " ".join(result.stdout.split())
    again = regard_command(
        "map", "--open", "a.safetensors", "--layer", "3", "--head", "2", "--top", "4", "--far", "30", "--json", "b.json"
    )
    assert again.returncode == 0, again.stderr
    opened = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))
    (status,) = opened.pop("statuses")
    assert any("has attention and values for" in note for note in status["notes"])
    assert opened == {name: value for name, value in data.items() if name != "statuses"}


def documented(page: str) -> list[str]:
    """The first command about a book that a page prints, as a person would type it."""
    block = re.search(r"^(regard map book(?:.*\\\n)*.*)\n", (ROOT / page).read_text(encoding="utf-8"), re.M)
    assert block is not None
    return shlex.split(block[1].replace("\\\n", " "))[1:]


def check_documented(folder: Path, text: str) -> None:
    """Both pages' commands, as they are printed, on a text longer than the default model."""
    commands = [documented(page) for page in ("docs/commands/map.md", "docs/long.md")]
    assert {command[1] for command in commands} == {"book.txt"}
    (folder / "book.txt").write_text(text, encoding="utf-8")
    for code, out, err in run_all_in_process(folder, commands):
        told = re.sub(r"^[a-z ]+: about \S+ \S+ in all\n", "", err)  # where it takes more than ten seconds
        assert (code, told) == (0, "")
        assert "In layer 2, tokens attend" in out
        assert "windows of 512 tokens" in " ".join(out.split())
    assert {"map.png", "map.json"} <= set(os.listdir(folder))


@pytest.mark.long  # 5 s; test_docs_commands runs the pages as well
def test_the_documented_commands_take_a_text_longer_than_the_model(folder: Path) -> None:
    check_documented(folder, TEXT * 14)


@pytest.mark.long  # the same commands on a text of our own are above
@pytest.mark.shared
@pytest.mark.skipif(not BOOK.is_file(), reason=f"no file {BOOK} (REGARD_SHARED names another place)")
def test_the_documented_commands_take_chapters_of_a_book(folder: Path) -> None:
    check_documented(folder, BOOK.read_text(encoding="utf-8")[:12_000])


def test_the_band_in_a_file(run, folder: Path) -> None:
    run(texts="text.txt", layer=3, window=64, json_file=Path("a.json"))
    data = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert data["picture"] is None
    band = data["band"]
    assert (band["window"], band["stride"]) == (64, 31)
    assert len(band["values"]) == data["tokens"]
    assert len(band["values"][0]) == band["count"] < 128
    assert band["values"][0][0] is None  # nothing is before the first token
    assert band["values"][0][-band["first"]] > 0


def test_a_saved_trace(run, minilm, folder: Path, capsys) -> None:
    trace = minilm.trace(TEXT, layers=[2])
    trace.save("one.safetensors")
    regard.save([trace, trace], "two.safetensors")
    run(open_file=Path("one.safetensors"), layer=2)
    assert "layer 2" in capsys.readouterr().out
    for file, given, says in (
        ("one.safetensors", {"layer": 3}, r"attention\[3\] was not saved: the file has 2 of 6"),
        ("two.safetensors", {"layer": 2}, "holds 2 traces, but map shows one"),
        ("one.safetensors", {"layer": 2, "window": 64}, "--open and --window"),
        ("one.safetensors", {"layer": 2, "texts": "text.txt"}, "--open and FILE"),
        ("none.safetensors", {"layer": 2}, "trace or attention file 'none.safetensors' cannot be read: No such file"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            run(open_file=Path(file), **given)


def test_without_a_layer_the_one_that_says_most_is_shown(run, minilm, folder: Path, capsys) -> None:
    trace = minilm.trace(Path("text.txt").read_text(encoding="utf-8"))
    best = most_specific_weight(specific_weights(trace))
    run(texts="text.txt", figure=Path("a.svg"), save_file=Path("a.safetensors"))
    out = " ".join(capsys.readouterr().out.split())
    said = text_choice(best.layer)
    assert said in out
    assert f"layer {best.layer}" in (folder / "a.svg").read_text(encoding="utf-8")
    assert regard.open("a.safetensors").attention.kept == (best.layer,)
    of_head = most_specific_weight(specific_weights(trace, head=3))
    run(texts="text.txt", head=3)
    assert text_choice(of_head.layer, 3) in " ".join(capsys.readouterr().out.split())


def test_windows(run, folder: Path, capsys) -> None:
    run(texts="text.txt", layer=1, window=64, stride=20, json_file=Path("a.json"), figure=Path("a.svg"))
    out = capsys.readouterr().out
    assert "In layer 1, tokens attend" in out
    assert "windows of 64 tokens, stride 20" in " ".join(out.split())
    data = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert len(data["heads"]) == 12
    assert data["picture"] is None
    assert data["band"]["values"][0][0] is None
    assert "<svg" in (folder / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "options", "says"),
    [
        (None, {}, "no file given: regard map FILE"),
        ("text.txt", {"layer": None, "window": 64}, "--window needs --layer"),
        ("none.txt", {}, "'none.txt' cannot be read: No such file"),
        (".", {}, "'.' cannot be read: it isn't a regular file"),
        ("empty.txt", {}, "'empty.txt' is empty"),
        ("blank.txt", {}, "'blank.txt' is blank"),
        ("latin.txt", {}, "'latin.txt' is not UTF-8: byte 0xe9 at 8 (line 2), "),
        ("marked.txt", {}, "'marked.txt' is not UTF-8: byte 0xff at 5 (line 1), "),
        ("text.txt", {"layer": 6}, "layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"),
        ("text.txt", {"layer": -7}, "layer -7 is out of range: all-MiniLM-L6-v2 has layers 0 to 5, or -6 to -1"),
        ("text.txt", {"head": 12}, "head 12 is out of range: all-MiniLM-L6-v2 has heads 0 to 11"),
        ("text.txt", {"stride": 4}, "--stride needs --window"),
        ("text.txt", {"window": 600}, "window: got 600, but all-MiniLM-L6-v2 takes at most 512"),
        ("text.txt", {"window": 64, "stride": 63}, "stride: got 63, expected 1 to 61"),
        ("text.txt", {"window": 64, "save_file": Path("a.safetensors")}, "no trace to save"),
        ("long.txt", {}, "takes at most 512; it can be read in overlapping windows, with --window"),
        ("text.txt", {"figure": Path("a.gif")}, "file name must end in .pdf or .png or .svg"),
        ("text.txt", {"json_file": Path("a.txt")}, "file name must end in .json"),
    ],
)
def test_bad_input(run, folder: Path, capsys, file, options, says: str) -> None:
    (folder / "empty.txt").write_bytes(b"")
    (folder / "blank.txt").write_bytes(b" \n ")
    (folder / "latin.txt").write_bytes(b"a bank\nc\xe9")
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbfab\xffc")
    (folder / "long.txt").write_bytes(b"bank " * 600)
    before = sorted(os.listdir(folder))
    with pytest.raises(regard.RegardError) as caught:
        run(texts=file, **({"layer": 0} | options))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""
    assert sorted(os.listdir(folder)) == before


def test_what_is_refused_ends_with_2(regard_command) -> None:
    result = regard_command("map", "none.txt", "--layer", "x")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Input should be a valid integer" in result.stderr


def test_help_does_not_wait_for_torch(regard_command) -> None:
    result = regard_command("map", "--help")
    assert result.returncode == 0
    for option in ("--layer", "--head", "--far", "--window", "--stride", "--save"):
        assert option in result.stdout


def test_layers_and_heads_count_from_the_end_too(run, folder: Path, capsys) -> None:
    run(texts="text.txt", layer=-1, head=-2, everything=True, save_file=Path("a.safetensors"))
    assert "layer 5, head 10" in " ".join(capsys.readouterr().out.split())
    run(open_file=Path("a.safetensors"), layer=-1, head=-2, everything=True)
    assert "layer 5, head 10" in " ".join(capsys.readouterr().out.split())
    run(texts="text.txt", layer=-2, head=-12, window=64, everything=True)
    assert "layer 4, head 0" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--open", "a.safetensors", "text.txt"], "--open and FILE: the saved trace is shown as it is"),
        (["--open", "a.safetensors", "--window", "8"], "--open and --window"),
        (["--open", "a.safetensors", "--model", "tiny"], "--open and --model"),
        (["text.txt", "--top", "0"], "--top: got 0, expected 1 or more"),
        (["text.txt", "--far", "-1"], "--far: got -1, expected 0 or more"),
    ],
)
def test_what_is_refused(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["map", *given])
    assert left.value.code == 2
    assert says in capsys.readouterr().err


def test_a_mark_of_the_encoding_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbfa bank")
    assert read_file_argument(tmp_path / "text.txt") == "a bank"


def test_one_matrix_of_a_file_of_windows_and_of_a_saved_trace(minilm, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(RIVER)
    told: list[float] = []

    def look(layer: int | None, head: int | None, **given: Any) -> Any:
        source = Source(**({"texts": [str(tmp_path / "text.txt")]} | given), load=lambda _: minilm)
        query = MapQuery(layer=layer, head=head, top=3, far=5)
        return query.run(source, lambda done, of: told.append(done / of))

    found = look(-1, 2)
    (trace,) = found.traces
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)
    assert found.why == ""
    assert list(trace.attention.kept) == [5]
    assert (found.layer, found.head, len(found.receivers)) == (5, 2, 3)
    file = tmp_path / "a.safetensors"
    trace.save(file)
    again = look(5, 2, open_file=file)
    assert [each.text for each in again.traces] == [RIVER]
    assert again.receivers == found.receivers
    one = look(5, 2, window=100)
    assert [each.text for each in one.traces] == [RIVER]
    assert [each.place for each in one.receivers] == [each.place for each in found.receivers]
    best = look(None, None)
    assert len(best.traces[0].attention) == 6
    assert best.why.startswith(f"Layer {best.layer} was chosen ")
    assert best.layer in range(6)
    with pytest.raises(RegardError, match="layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"):
        look(6, None)
    regard.save([trace, trace], file)
    with pytest.raises(RegardError, match="holds 2 traces, but map shows one: save only that trace"):
        look(5, 2, open_file=file)
