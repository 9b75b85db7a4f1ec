"""`regard generate`: its files, both texts where it is steered, and what is refused before a model loads."""

import csv
import json
from types import SimpleNamespace
from typing import Any

import pytest

from regard.cli.verbs.generate import Sampling
from regard.errors import RegardError
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
    call = ("generate", "A man is", "--model", "gpt", "--new-tokens=6", *NEEDED)  # the old name
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
        (["A man", "--model", "m", *NEEDED, "--strength", "much"], "given 'much', needs a number"),
        (["A man", "--model", "m", "--top", "0"], "--top: given 0, needs 1 or more"),
    ],
)
def test_what_is_refused(regard_command, given, says) -> None:
    done = regard_command("generate", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (Sampling(max_new_tokens=0), "--max-new-tokens: given 0, needs 1 or more"),
        (Sampling(seed=3), "--seed has no effect on the likeliest token"),
        (Sampling(temperature=-1.0), "temperature: given -1.0, needs a number above 0"),
        (Sampling(top_k=-1), "top_k: given -1, needs"),
    ],
)
def test_values_that_no_model_can_have(chosen: Sampling, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        chosen.check()


@pytest.mark.parametrize(
    ("chosen", "options"),
    [
        (Sampling(), {}),
        (Sampling(temperature=0.5), {"do_sample": True, "temperature": 0.5}),
        (Sampling(top_k=7), {"do_sample": True, "temperature": 1.0, "top_k": 7}),
        (Sampling(temperature=2.0, top_k=0, seed=5), {"do_sample": True, "temperature": 2.0, "top_k": 0}),
    ],
)
def test_what_is_drawn(chosen: Sampling, options: dict[str, Any]) -> None:
    chosen.check()
    assert chosen.options == options


class Recorder:
    """In the place of a model: keeps what it is asked."""

    def __init__(self, limit: int | None, *, tokenizer: bool = True) -> None:
        self.limit, self.asked = limit, {}
        self.tokenizer = (lambda text, verbose: {"input_ids": text.split()}) if tokenizer else None

    def generate(self, text: str, **options: Any) -> Any:
        if options["max_new_tokens"] > 100:
            raise RegardError("max_new_tokens: given too many")
        self.asked = {"text": text, **options}
        return SimpleNamespace(text=text)


@pytest.mark.parametrize(
    ("limit", "tokenizer", "given", "asked"),
    [(None, True, None, 60), (61, True, None, 58), (3, True, None, 1), (7, False, None, 60), (7, True, 5, 5)],
)
def test_as_many_as_fit(limit: int | None, tokenizer: bool, given: int | None, asked: int) -> None:
    model: Any = Recorder(limit, tokenizer=tokenizer)
    assert Sampling(given, top_k=2, seed=11).write(model, "one two three").text == "one two three"
    expected = {"max_new_tokens": asked, "seed": 11, "do_sample": True, "temperature": 1.0, "top_k": 2}
    assert model.asked == {"text": "one two three", "interventions": ()} | expected


def test_a_refusal_names_the_option() -> None:
    with pytest.raises(RegardError, match="^--max-new-tokens: given too many$"):
        Sampling(101).write(Recorder(None), "one")  # type: ignore[arg-type]
