"""`regard generate`: its files, both texts where it is steered, and what is refused before a model loads."""

import csv
import json
from types import SimpleNamespace
from typing import Any

import pytest

from regard.questions.generate.query import usual_number_of_tokens
from tests.support import own_models

NEEDED = ("--towards", "A man", "--away", "She takes", "--layer", "-1")


def test_files_have_every_written_token(regard_command, tmp_path) -> None:
    own_models.opened("gpt").save(tmp_path / "gpt")
    files = ("--json", "a.json", "--csv", "a.csv", "--figure", "a.png", "--save", "a.safetensors")
    done = regard_command("generate", "A man is", "--model", "gpt", "--max-new-tokens", "6", *files)
    assert done.returncode == 0, done.stderr
    data = json.loads((tmp_path / "a.json").read_text())
    (written,) = data["written"]
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert [float(row["probability"]) for row in rows] == [each["probability"] for each in written["tokens"]]
    assert data["findings"][0] in " ".join(done.stdout.split())
    assert (tmp_path / "a.png").stat().st_size > 0
    assert regard_command("see", "--open", "a.safetensors").returncode == 0


def test_both_texts_side_by_side(regard_command, tmp_path) -> None:
    own_models.opened("gpt").save(tmp_path / "gpt")
    call = ("generate", "A man is", "--model", "gpt", "--max-new-tokens=6", *NEEDED)
    done = regard_command(*call, "--strength", "-100")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "teered: output of layer 1 at all positions, by -100 × (the mean state" in said
    assert "Steering changed no token" not in said
    same = " ".join(regard_command(*call, "--strength", "0").stdout.split())
    assert "Steering changed no token: try a larger --strength or another --layer." in same


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "no text given: regard generate TEXT"),
        (["A man", "--model", "m", "--strength", "2"], "--towards is needed"),
        (["A man", "--model", "m", "--towards", "A"], "--away is needed"),
        (["A man", *NEEDED], "--model is needed: pass a causal model"),
        (["A man", "--model", "m", *NEEDED[:4]], "--layer is needed"),
        (["A man", "--model", "m", *NEEDED, "--strength", "much"], "Input should be a valid number"),
        (["A man", "--model", "m", "--top", "0"], "--top: got 0, expected 1 or more"),
        (["A man", "--model", "m", "--max-new-tokens", "0"], "--max-new-tokens: got 0, expected 1 or more"),
        (["A man", "--model", "m", "--seed", "3"], "--seed has no effect on the likeliest token"),
        (["A man", "--model", "m", "--temperature", "-1"], "temperature: got -1.0, expected a number above 0"),
        (["A man", "--model", "m", "--top-k", "-1"], "top_k: got -1, expected"),
    ],
)
def test_what_is_refused(regard_command, given, says) -> None:
    done = regard_command("generate", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("limit", "tokenizer", "most"), [(None, True, 60), (61, True, 58), (3, True, 1), (7, False, 60)]
)
def test_as_many_as_fit(limit: int | None, tokenizer: bool, most: int) -> None:
    spelled = (lambda text, verbose: {"input_ids": text.split()}) if tokenizer else None
    model: Any = SimpleNamespace(limit=limit, tokenizer=spelled)
    assert usual_number_of_tokens(model, "one two three") == most


def test_a_refusal_names_the_option(regard_command, tmp_path) -> None:
    own_models.opened("gpt").save(tmp_path / "gpt")
    done = regard_command("generate", "A man", "--model", "gpt", "--max-new-tokens", "100000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--max-new-tokens can be at most 29" in done.stderr


def test_a_seed_repeats_what_is_drawn(regard_command, tmp_path) -> None:
    own_models.opened("gpt").save(tmp_path / "gpt")
    call = ("generate", "A man", "--model", "gpt", "--max-new-tokens", "6", "--json", "-", "--temperature")
    drawn = [json.loads(regard_command(*call, *each).stdout)["written"] for each in (["9", "--seed", "1"],) * 2]
    other = json.loads(regard_command(*call, "9", "--seed", "1", "--top-k", "1").stdout)["written"]
    assert drawn[0] == drawn[1] != other
