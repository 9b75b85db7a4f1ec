"""The command itself: its help, what it suggests, what it writes where."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.cli.main import NAMES, VERBS, load_verbs, main
from tests.support import MONEY, RIVER, in_one_process, make_tiny, run_all_in_process


def told(capsys, *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a call in this process."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_help_is_whole_sentences_and_an_example(capsys) -> None:
    code, out, err = told(capsys, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    verbs = re.findall(r"^  ([a-z]+) +(\S.*)$", out.partition("Options:")[0].partition("Look at attention:")[2], re.M)
    assert [name for name in NAMES if f"\n{VERBS[name].heading}:\n" not in out] == []
    assert told(capsys, "-h")[1] == out
    assert told(capsys, "see", "-h") == told(capsys, "see", "--help")
    assert [verb for verb, _ in verbs] == list(NAMES)
    assert all(sentence.endswith(".") for _, sentence in verbs)
    assert 'regard see "A man on a river bank." "Money in a bank." --word bank' in out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("A text", "No such command 'A text'. To look at a text: regard see \"A text\"\n"),
        ("se", "No such command 'se'. Did you mean 'see'?\n"),
        ("Token", "Did you mean 'tokens'?"),
        ("bank", "paint, train, evolve, embed, find, senses, shift, lesson, article, fetch, check. To look at a text"),
        ('a "quoted" text', "To look at a text: regard see TEXT\n"),
        ("long " * 40, "To look at a text: regard see TEXT\n"),
    ],
)
def test_what_was_meant(capsys, given: str, says: str) -> None:
    code, out, err = told(capsys, given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


SMALL_BLOCK = ("--set", "block=2")  # so that the short text is long enough
REFUSED = [
    (["see", "A bank", "--model", "./none"], "model './none': there is no such folder"),
    (["see", "A bank", "--model", "empty"], "'empty' is not a model folder: it has no config.json"),
    (["see", "A bank", "--model", "void.gguf"], "model 'void.gguf' is truncated or not a GGUF file"),
    (["see", "A bank", "--wrod", "bank"], "No such option: --wrod"),
    (["see", "A bank", "--top", "0"], "--top: got 0"),
    (["see", "A bank", "--json", "none/a.json"], "there is no folder 'none'"),
    (["see", "--open", "text.txt"], "'text.txt' is not a valid trace or attention file"),
    (["see", "--open", "empty"], "'empty' cannot be read: it isn't a regular file"),
    (["embed"], "Missing argument 'PATH...': regard embed texts/ --out texts.store"),
    (["find", "bank"], "Missing option '--store': regard find bank --store bank.store --sort right"),
    (["find", "bank", "--store", "empty"], "store 'empty': there is no manifest.json in it"),
    (["tokens", "A bank", " "], "text 2 is blank"),
    (["map", "none.txt"], "'none.txt' cannot be read: No such file"),
    (["heads", "A bank", "--tests", "--seed", "-1"], "--seed: got -1, expected 0 to 2^63 - 1"),
    (["generate", "A bank", "--model", "m", "--temperature", "-1"], "temperature: got -1.0, expected a number"),
    (["train", "void.txt", "--out", "new"], "'void.txt' is empty: there is nothing to train on"),
    (["train", "--pairs", "text.txt", "--out", "new"], "'text.txt', line 1: no tab"),
    (["train", "text.txt", "--out", "new", "--set", "layres=2"], "'layres' isn't a setting. Did you mean 'layers'?"),
    (["train", "text.txt", "--out", "new", *SMALL_BLOCK, "--set", "heads=5"], "d_model: got 128, expected a"),
]  # fmt: skip


def test_bad_input_gets_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("A man on a river bank.")
    (tmp_path / "empty").mkdir()
    (tmp_path / "void.txt").touch()
    (tmp_path / "void.gguf").touch()
    before = sorted(tmp_path.rglob("*"))
    told = in_one_process(tmp_path, [call for call, _ in REFUSED])
    for (call, says), (code, out, err) in zip(REFUSED, told, strict=True):
        out = "" if call[0] == "train" and out.startswith("Reading ") else out  # which texts, before it reads them
        assert (code, out, err.count("\n")) == (2, "", 1), (call, err)
        assert err.startswith("regard: error: "), (call, err)
        assert says in err, (call, err)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_dtype_of_a_model_stands_before_the_verb(capsys, minilm, tmp_path: Path) -> None:
    for given, says in (
        (("--dtype", "bf16", "see", "x"), "--dtype: got 'bf16', expected one of auto, float32, bfloat16, float16"),
        (("--dtype", "float16", "find", "x"), "--dtype: regard find loads no model in another dtype: leave it out"),
        (("see", "x", "--dtype", "float16"), "--dtype stands before the verb: regard --dtype bfloat16 see ..."),
    ):
        code, out, err = told(capsys, *given)
        assert (code, out) == (2, "")
        assert says in err
    make_tiny(tmp_path, minilm)
    for dtype in ("float16", "auto"):
        _, out, _ = told(capsys, "--dtype", dtype, "see", "A bank.", "--model", str(tmp_path))
        assert ("computes in float16" in " ".join(out.split())) == (dtype == "float16")


def test_json_to_standard_output(minilm, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(RIVER)
    (tmp_path / "run" / "watch").mkdir(parents=True)
    minilm.trace("a bank").save(tmp_path / "run" / "watch" / "step-000000.safetensors")
    calls = [
        ["see", RIVER, MONEY, "--word", "bank", "--save", "a.safetensors"],
        ["why", "a bank", "--word", "bank"],
        ["steps", "a bank", "--word", "bank"],
        ["map", "text.txt", "--layer", "-1"],
        ["evolve", "run"],
    ]
    for call, (code, out, err) in zip(
        calls, run_all_in_process(tmp_path, [[*call, "--json", "-"] for call in calls]), strict=True
    ):
        assert code == 0, err
        assert json.loads(out)["format"] == f"regard {call[0]}"
        assert err == ("Wrote a.safetensors\n" if call[0] == "see" else "")
    assert not (tmp_path / "-").exists()


def test_the_name_of_a_file_is_a_text_and_a_line_says_so(regard_command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("A bank.")
    told = regard_command("tokens", "notes.txt").stdout
    assert "“notes.txt” was read as a text." in told
    for text in ("A bank.", "漢" * 100):  # the second would be too long for a file's name
        told = regard_command("tokens", text)
        assert (told.returncode, "was read" in told.stdout) == (0, False)
    for written, code in (("\ufeffA bank.\n".encode(), 0), (b"A \xff bank.", 2)):
        done = subprocess.run([sys.executable, "-m", "regard", "tokens", "-"], input=written, capture_output=True)
        assert (done.returncode, b"is not UTF-8" in done.stderr) == (code, code == 2)
        assert code or done.stdout.decode() == regard_command("tokens", "A bank.").stdout


def test_without_a_standard_output_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    call = ["tokens", "a bank", "--tokenizer", "words", "--json"]
    for arguments, code in (
        ([*call, str(tmp_path / "a.json")], 0),
        (["see"], 2),
        ([*call, str(tmp_path / "b.json")], 0),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == code
        sys.stdout.close()  # the next call finds them closed
        sys.stderr.close()
    assert [json.loads((tmp_path / f"{name}.json").read_text("utf-8"))["texts"] for name in "ab"] == [["a bank"]] * 2


def test_closed_streams_of_a_process(tmp_path: Path) -> None:
    def code(call: str) -> int:
        done = subprocess.run(["sh", "-c", f"exec {sys.executable} -m regard {call}"], cwd=tmp_path, check=False)
        return done.returncode

    assert code("--help >&- 2>&- <&-") == 0
    assert code("tokens a --tokenizer words --json - >&- 2>&-") == 2


@pytest.mark.parametrize(("encoding", "shown"), [
    ("ascii", b'..:-+*## ## * "bank" x 2-3 -1 -> a ... \\xe9 \\u94f6'),
    ("cp1252", b"..:-+*## ## \x95 \x93bank\x94 \xd7 2\x963 -1 -> a \x85 \xe9 \\u94f6"),
])  # fmt: skip
def test_what_an_encoding_lacks_is_readable(encoding: str, shown: bytes) -> None:
    assert "▁▂▃▄▅▆▇█ █▉ • “bank” × 2–3 −1 → a … é 银".encode(encoding, "readable") == shown


@pytest.mark.long  # 7 s: three interpreters
def test_json_in_a_pipe(regard_command, tmp_path: Path) -> None:
    regard = f'"{sys.executable}" -m regard tokens'
    see = f'"{sys.executable}" -m regard see "a café bank 😀" --json -'
    script = f"set -o pipefail; {see} | {sys.executable} -m json.tool > a.json"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "a.json").read_text("latin-1"))["texts"] == ["a café bank 😀"]
    # what is short waits in the buffer until the end, where the pipe is broken all the same
    gone = subprocess.run(["bash", "-c", f"{regard} a --tokenizer words | true; exit ${{PIPESTATUS[0]}}"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (gone.returncode in (0, 1), gone.stderr) == (True, "")


@pytest.mark.long  # 15 s: four interpreters in terminals
def test_no_color_means_no_escape_codes(tmp_path: Path) -> None:
    call = ["see", "a river bank", "--word", "bank"]
    began = time.perf_counter()
    plain, coloured = (in_a_terminal(tmp_path, call, NO_COLOR=value) for value in ("1", ""))
    took = time.perf_counter() - began
    assert plain
    assert b"\x1b" not in plain
    assert b"\x1b" in coloured
    # the two runs tell how long they took, from the command's start to its end
    whole = sum(float(seconds) for seconds in re.findall(rb", ([0-9.]+) s\b", plain + coloured))
    assert 0.3 * took < whole < took


def in_a_terminal(folder: Path, call: list[str], **environment: str) -> bytes:
    """What a call writes to a terminal, both of its streams."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", *call], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    process.wait()
    os.close(ours)
    return written


def test_the_whole_time_is_told(minilm, capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("regard.models.load.load", lambda _name, **_: minilm)
    monkeypatch.setattr("regard.cli.start.began", [time.perf_counter() - 1234.0])
    (tmp_path / "text.txt").write_text("a bank")
    load_verbs()
    see, why, map_file = (VERBS[name].run for name in ("see", "why", "map"))
    see(texts=["a bank"], word="bank", everything=True)
    see(texts=["a bank"], word="bank")
    why(texts=["a bank"], word="bank", everything=True)
    map_file(texts=str(tmp_path / "text.txt"), layer=0, everything=True)
    out = capsys.readouterr().out
    assert " ".join(out.split()).count(", 123") == 4
