"""`regard attribute` as a person runs it: what it prints and writes, and what it refuses."""

import csv
import json
from typing import Any

import pytest

from tests.questions.see.test_query import refused
from tests.support import run_in_process
from tests.support.own_models import TEXTS, opened, pair
from tests.support.web_pages import Read

TEXT = "He sat on a river bank, fishing."
COSINE = ("--word", "bank", "--like", "river")


def test_a_cosine_is_split_printed_and_written(regard_command: Any, tmp_path: Any) -> None:
    files = ("--json", "a.json", "--csv", "a.csv", "--figure", "a.png")
    done = regard_command("attribute", TEXT, *COSINE, "--top", "4", *files)
    assert done.returncode == 0, done.stderr
    assert "Contributions to the cosine of “bank” and “river” (0.61)" in done.stdout
    assert "The components sum to the outcome within" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    written = json.loads((tmp_path / "a.json").read_text())
    assert (written["format"], written["method"], written["texts"]) == ("regard attribute", "direct", [TEXT])
    for parts in written["parts"].values():
        assert sum(each["adds"] for each in parts) == pytest.approx(written["value"], abs=1e-5)
    with (tmp_path / "a.csv").open(encoding="utf-8") as opened_file:
        rows = list(csv.DictReader(opened_file))
    assert len(rows) == len(written["parts"]["token"])
    assert float(rows[0]["adds"]) == written["parts"]["token"][0]["adds"]
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_gradient_methods(minilm: Any, tmp_path: Any) -> None:
    call = ["attribute", TEXT, *COSINE, "--method"]
    tokens, words = [
        run_in_process(tmp_path, arguments)
        for arguments in (
            [*call, "gradient-x-input", "--csv", "tokens.csv"],
            [*call, "integrated-gradients", "--steps", "4", "--by", "word", "--json", "words.json"],
        )
    ]
    for done in (tokens, words):
        assert done.returncode == 0, done.stderr
    assert "Contribution of each token to the cosine of “bank” and “river”" in tokens.stdout
    assert (tmp_path / "tokens.csv").read_text().startswith("token,text,score,norm")
    written = json.loads((tmp_path / "words.json").read_text())
    assert sum(each["score"] for each in written["words"]) == pytest.approx(
        sum(each["score"] for each in written["tokens"])
    )
    assert "Contribution of each word to the cosine of “bank” and “river”" in words.stdout


def test_of_two_texts(tmp_path: Any) -> None:
    call = ["attribute", TEXT, TEXT.replace("river", "money"), "--word", "bank", "--method", "attribution-patching"]
    done = run_in_process(tmp_path, [*call, "--json", "a.json", "--csv", "a.csv"])
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "a.json").read_text())
    assert written["outcome"].endswith("estimated by gradients")
    assert (tmp_path / "a.csv").read_text().startswith("layer,position,outcome,share")


def test_a_next_token_and_a_pairs_target(tmp_path: Any) -> None:
    opened("gpt").save(tmp_path / "gpt")
    pair().save(tmp_path / "pair")
    one, at, both = [
        run_in_process(tmp_path, arguments)
        for arguments in (
            ["attribute", TEXTS[0], "--to", "bank", "--against", "river", "--model", "gpt"],
            ["attribute", TEXTS[0], "--to", "man", "--at", "A", "--model", "gpt", "--by", "word"],
            ["attribute", TEXTS[0], "--target-text", "Un homme", "--to", "ho", "--at", "0", "--model", "pair"],
        )
    ]
    for done in (one, at, both):
        assert done.returncode == 0, done.stderr
    assert "Contributions to the logit difference “bank” − “river” at “.” (" in one.stdout
    assert "Contributions to the logit of “man” at “A” (" in at.stdout
    assert "cross L0H" in both.stdout


def test_bad_input(regard_command: Any) -> None:
    refused(regard_command("attribute"), "no text given")
    refused(regard_command("attribute", TEXT), "pass --to (a next token)")
    refused(regard_command("attribute", TEXT, "--word", "bunk", "--like", "river"), "the nearest are 'bank'")
    refused(regard_command("attribute", TEXT, "--word", "bank", "--like", "rivers"), "'rivers' is not in the text")
    refused(regard_command("attribute", TEXT, *COSINE, "--top", "0"), "--top: got 0")
    refused(regard_command("attribute", TEXT, *COSINE, "--csv", "a.txt"), "--csv")
    refused(regard_command("attribute", TEXT, "--to", "Paris"), "has no language head")


@pytest.mark.browser
def test_pages_of_parts_and_of_heads(regard_command: Any, tmp_path: Any) -> None:
    done = regard_command("attribute", TEXT, *COSINE, "--html", "a.html", "--json", "a.json")
    assert done.returncode == 0, done.stderr
    grid = next(panel for panel in Read(tmp_path / "a.html").data["panels"] if panel["name"] == "Heads")
    written = json.loads((tmp_path / "a.json").read_text())
    by_head = {each["part"]: each["adds"] for each in written["parts"]["writer"]}
    assert grid["values"][3][7] == pytest.approx(by_head["layer 3, head 7"], abs=1e-6)
