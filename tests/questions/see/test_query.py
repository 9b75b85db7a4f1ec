"""The command as a person runs it: its streams, its files and its exit code."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from PIL import Image

import regard
from regard.cli.main import main
from regard.display.query import option_name
from regard.errors import RegardError
from regard.questions.see.query import SeeQuery, read_sentences
from tests.support import MONEY, RIVER, in_one_process, make_tiny
from tests.vision.test_pictured_text import save_looker
from tests.vision.test_pictures import PROCESSOR, built, noise

OWN = [f"{begin} {{}}{end}" for begin in ("They saw the", "We spoke of the", "It was the", "I know the")
       for end in (".", " today.", ", he said.")]  # fmt: skip


def refused(result: subprocess.CompletedProcess[str], *says: str) -> None:
    """One clear line on stderr, exit code 2, nothing on stdout."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("regard: error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    for part in says:
        assert part in result.stderr


def test_the_main_job(regard_command, tmp_path: Path) -> None:
    result = regard_command(
        "see", RIVER, MONEY, "--word", "bank", "--compare", "money,river", "--layer", "0", "--head", "3", "--top", "3",
        "--figure", "a.png", "--json", "a.json", "--save", "a.safetensors", "--full",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "equal to the last bit" in result.stdout
    assert "after layer 5      0.85" in result.stdout
    assert "river 0.25  fishing 0.12" in result.stdout
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.png", "a.safetensors"]
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert round(data["pairs"][0]["hidden_states"][6], 3) == 0.847
    river, money = regard.open(tmp_path / "a.safetensors")
    assert (river.text, money.text) == (RIVER, MONEY)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_overview(regard_command) -> None:
    result = regard_command("see", "a man on a river bank", "--full")
    assert result.returncode == 0
    assert "what each token attends to most" in result.stdout


def test_what_was_found_fits_one_screen(regard_command) -> None:
    result = regard_command("see", RIVER, MONEY, "--word", "bank", "--compare", "money,river,water,loan")
    lines = result.stdout.splitlines()
    assert len(lines) <= 39  # and one for the picture's name
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Attention from “bank” in layer 0")  # bars first, then numbers, then sentences
    text = " ".join(result.stdout.split())
    assert text.index("river 0.") < text.index("Text 1 moves “bank” towards “river” (cosine 0.48, ")
    assert "“withdrawing” in text 2 (0.39, layer 0, head 0)" in text
    assert "end at cosine 0.85, with the largest drop in layer 0." in text
    assert "More: --full" in text


def test_what_is_worth_a_look_without_a_word(regard_command) -> None:
    out = regard_command("see", RIVER).stdout
    said = " ".join(out.split())
    assert re.search(r"• “\w+” attends unusually strongly to “\w+” \(0\.\d\d, layer \d, head \d+\)", said)


@pytest.mark.long  # a process of its own
def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    script = f'"{sys.executable}" -m regard see "a river bank" | head -1'
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode in (0, 1)  # 1 where the pipe broke: there is nobody to tell
    assert result.stderr == ""


@pytest.mark.long  # a process of its own
def test_an_ascii_terminal(regard_process) -> None:
    result = regard_process("see", "a café bank 银", "--word", "bank", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0, result.stderr
    assert '* "bank" attends' in result.stdout
    assert "##" in result.stdout
    assert set(re.findall(r"\\[ux]\w+", result.stdout)) == {"\\u94f6"}


def test_help_and_version_do_not_wait_for_torch(tmp_path: Path) -> None:
    calls = [["--help"], ["see", "--help"], ["map", "--help"], ["--version"], []]
    for code, out, err in in_one_process(tmp_path, calls, watch="torch,transformers,numpy,numba,matplotlib"):
        assert (code, err) == (0, "")
        assert "Usage: " in out or "regard 0." in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["see"], "no text given"),
        (["see", ""], "text is empty"),
        (["see", "a bank", "  "], "text 2 is blank"),
        (["see", "a bank", "--word", "bunk"], "the nearest are 'bank'"),
        (["see", "a bank", "--word", " "], "--word is empty"),
        (["see", "bank " * 511, "--word", "a"], "513 tokens with special tokens, all-MiniLM-L6-v2 takes at most 512"),
        (["see", "a bank", "--layer", "6"], "layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"),
        (["see", "a bank", "--head", "12"], "head 12 is out of range: all-MiniLM-L6-v2 has heads 0 to 11"),
        (["see", "a bank", "--model", "no-such-model"], "the hub is not asked, for HF_HUB_OFFLINE is set"),
        (["see", "a bank", "--figure", "a.gif"], "file name must end in .pdf or .png or .svg"),
        (["see", "a bank", "--json", "a.txt"], "file name must end in .json"),
        (["see", "a bank", "--save", "a.pt"], "file name must end in .safetensors"),
        (["see", "a bank", "--figure", "/proc/a.png"], "cannot write '/proc/a.png'"),
        (["see", "a bank", "--target-text", "une banque", "--model", "./nowhere"], "there is no such folder"),
        (["see", "a", "b", "--target-text", "x"], "--target-text: got 1 for 2 text(s), expected one per text"),
        (["see", "a bank", "--target-text", " "], "target is blank"),
        (["see", "a bank", "--stride", "3"], "--stride needs --window"),
        (["see", "a bank", "--save-layers", "0"], "--save-layers needs --save"),
        (["see", "a bank", "--save-attention-outputs"], "--save-attention-outputs needs --save"),
        (["see", "a bank", "--save-layers", "2-1"], "got '2-1', expected whole numbers such as 0,2-4"),
        (["see", "a bank", "--open", "a.safetensors"], "--open and TEXT: the saved traces have their own texts"),
        (["see", "--open", "a.safetensors", "--word", "bank", "--compare", "a"], "--compare needs the model"),
        (["see", "--open", "a.safetensors"], "trace or attention file 'a.safetensors' cannot be read: No such file"),
    ],
)
def test_bad_input(regard_command, tmp_path: Path, arguments: list[str], says: str) -> None:
    targets = [] if {"--figure", "--json", "--save"} & set(arguments) else ["--json", "all.json"]
    result = regard_command(*arguments, *(targets if arguments[0] == "see" and len(arguments) > 1 else []))
    refused(result, says)
    assert os.listdir(tmp_path) == []


def test_bad_files_are_found_before_a_model_is_loaded(regard_command) -> None:
    refused(regard_command("see", "a bank", "--model", "./nowhere", "--figure", "a.gif"), "file name must end in")


def test_bad_models(regard_command, minilm, tmp_path: Path) -> None:
    good = tmp_path / "good"
    make_tiny(good, minilm)
    assert regard_command("see", "a bank", "--model", str(good)).returncode == 0

    def broken(name: str) -> Path:
        return Path(shutil.copytree(good, tmp_path / name))

    cut = broken("cut")
    (cut / "model.safetensors").write_bytes((good / "model.safetensors").read_bytes()[:-1000])
    refused(regard_command("see", "a bank", "--model", str(cut)), "truncated or not a safetensors file")

    nan = broken("nan")
    tensors = safetensors.torch.load_file(good / "model.safetensors")
    tensors["encoder.layer.0.output.dense.weight"][0, 0] = torch.nan
    safetensors.torch.save_file(tensors, nan / "model.safetensors", {"format": "pt"})
    refused(
        regard_command("see", "a bank", "--model", str(nan)), "NaN, in tensor 'encoder.layer.0.output.dense.weight'"
    )

    pickled = broken("pickled")
    torch.save(tensors, pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    refused(regard_command("see", "a bank", "--model", str(pickled)), "weights are pickled (pytorch_model.bin)")

    own = broken("own")
    config = json.loads((own / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (own / "config.json").write_text(json.dumps(config))
    (own / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    refused(regard_command("see", "a bank", "--model", str(own)), "its own code is never run")
    assert not (tmp_path / "ran").exists()

    refused(regard_command("see", "a bank", "--model", str(tmp_path)), "it has no config.json")


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("model")
    built("dinov2").save_pretrained(folder)
    PROCESSOR.save_pretrained(folder)
    Image.fromarray(noise(131, 97)).save(folder / "cat.png")
    return folder


def test_it_says_where_it_looks_and_writes_its_files(model: Path, tmp_path: Path, capsys: Any) -> None:
    files = [f"{tmp_path}/a.{end}" for end in ("json", "csv", "png")]
    given = ["--image", f"{model}/cat.png", "--model", str(model), "--json", files[0], "--csv", files[1]]
    with pytest.raises(SystemExit) as left:
        main(["see", *given, "--figure", files[2]])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert all(part in " ".join(said.split()) for part in ("cat.png", "layer 1, mean of 2 heads", "[CLS]"))
    data = json.loads(Path(files[0]).read_text())
    assert data["format"] == "regard look"
    assert data["texts"] == ["cat.png"]
    assert len(data["rows"]) == 16
    assert len(Path(files[1]).read_text().splitlines()) == 17
    with Image.open(files[2]) as drawn:
        assert drawn.width > 900


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--image", "{}/cat.png"], "--image needs --model"),
        (["--image", "{}/none.png", "--model", "{}"], "image '{}/none.png' cannot be read: No such file"),
        (["--image", "{}/config.json", "--model", "{}"], "cannot be read, expected one of PNG"),
        (["a text", "--image", "{}/cat.png", "--model", "{}"], "reads images only"),
        (["--image", "{}/cat.png", "--model", "{}", "--word", "a"], "--image and --word: an image has no words"),
        (["--image", "{}/cat.png", "--model", "{}", "--logit-lens"], "--image and --logit-lens: pass only one of them"),
        (["--image", "{}/cat.png", "--model", "{}", "--top", "0"], "--top: got 0, expected 1 or more"),
        (["--image", "{}/cat.png", "--model", "{}", "--remove", "x"], "--remove: got 'x', expected one of blank, m"),
        (["a text", "--remove", "blank"], "--remove: needs --image: it ablates regions of the image"),
        (["--image", "{}/cat.png", "--model", "{}", "--layer", "7"], "layer 7 is out of range"),
    ],
)
def test_what_is_refused(model: Path, given: list[str], says: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as left:
        main(["see", *(each.format(model) for each in given)])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert says.format(model) in " ".join(said.split())
    assert len(said.strip().splitlines()) <= 3


def test_a_text_looks_at_its_picture(tmp_path: Path, capsys: Any) -> None:
    save_looker(tmp_path)
    given = ["--image", f"{tmp_path}/cat.png", "--model", str(tmp_path), "--json", f"{tmp_path}/a.json"]
    for word, who in (([], "“?”"), (["--word", "mat", "--layer", "1", "--head", "2"], "“mat”")):
        with pytest.raises(SystemExit) as left:
            main(["see", "what is on the mat ?", *given, *word])
        assert left.value.code == 0
        said = " ".join(capsys.readouterr().out.split())
        assert all(part in said for part in (who, "layer 1, head 2" if word else "layer 2, mean of 3 heads"))
        assert len(json.loads((tmp_path / "a.json").read_text())["rows"]) == 16


def test_regions_are_removed(model: Path, tmp_path: Path, capsys: Any) -> None:
    given = ["--image", f"{model}/cat.png", "--model", str(model), "--remove", "mean"]
    with pytest.raises(SystemExit) as left:
        main(["see", *given, "--json", f"{tmp_path}/a.json", "--figure", f"{tmp_path}/a.png"])
    assert left.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from 1.00 to" in said
    assert "fill: mean" in said
    assert any("cosine of [CLS]" in each for each in json.loads((tmp_path / "a.json").read_text())["findings"])


@pytest.mark.parametrize("word", [[], ["--word", "bank"]])
def test_what_needs_words_to_compare_with(word: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["see", "a bank", *word, "--control", "model"])
    assert "--control needs --word and --compare" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("a", "--compare needs --word: it compares that word with others"),
        ("a, ,b", "--compare 'a, ,b': expected words separated by commas"),
        ("", "--compare '': expected words separated by commas, but one is empty"),
    ],
)
def test_words_to_compare_that_are_refused(given: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        SeeQuery(compare=(given,), word=None if "needs --word" in says else "bank").check(1, called=option_name)


def test_words_to_compare_are_each_once_and_in_their_order() -> None:
    assert SeeQuery().references == []
    assert SeeQuery(compare=("river, money", "river")).references == ["river", "money"]


def test_bad_sentences_are_refused_before_torch(regard_command, tmp_path) -> None:
    (tmp_path / "few.txt").write_text("A {}.\n")
    done = regard_command("see", "a bank", "--word", "bank", "--compare", "river", "--control", "few.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines() == [
        "regard: error: --control 'few.txt': 1 different sentences, expected 12 or more, one per line"
    ]


def test_they_are_what_is_held_against(regard_command, tmp_path) -> None:
    (tmp_path / "own.txt").write_text("\n".join(OWN))
    arguments = ("see", "We sat on the grassy bank.", "--word", "bank", "--compare", "river", "--json", "out.json")
    assert regard_command(*arguments, "--control", "own.txt").returncode == 0
    own = json.loads((tmp_path / "out.json").read_text())
    assert own["control"]["sentences"] == [each.replace("{}", "bank") for each in OWN]
    assert own["neutral"][0]["sentences"] == 12


def written(folder, content: bytes | str):
    file = folder / "neutral.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_file_has_one_sentence_a_line(tmp_path) -> None:
    lines = [f"Satz {n}: die {{}}." for n in range(12)]
    file = written(tmp_path, "\ufeff" + "\r\n".join([*lines, "", lines[0], "  "]))
    assert read_sentences(file, "Bank") == lines


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("A {}.\n" * 20, "1 different sentences, expected 12 or more, one per line"),
        ("", "0 different sentences, expected 12 or more"),
        ("A {}.\n\nA house.", r"line 3, 'A house.', has neither 'bank' nor \{\} in its place"),
        (b"\xff\xfe\x00A", "is not UTF-8 text: write one sentence per line"),
    ],
)
def test_a_bad_file_gets_one_line(tmp_path, content, says) -> None:
    with pytest.raises(RegardError, match=f"^--control '.*neutral.txt':? {says}") as caught:
        read_sentences(written(tmp_path, content), "bank")
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path) -> None:
    with pytest.raises(RegardError, match=r"--control '.*gone.txt' cannot be read: No such file"):
        read_sentences(tmp_path / "gone.txt", "bank")
    with pytest.raises(RegardError, match="--control '.*' cannot be read: it isn't"):
        read_sentences(tmp_path, "bank")
