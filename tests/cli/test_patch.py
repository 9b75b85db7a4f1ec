"""`regard patch`: the sweep as it is printed and written, and what is refused before a model is loaded."""

import json

import pytest

from tests.support.web_pages import Read

RIVER, MONEY = "We sat on the quiet river bank.", "We sat on the quiet money bank."


def test_it_prints_and_writes_the_sweep(regard_command, tmp_path) -> None:
    files = ("--figure", "a.png", "--json", "a.json")
    done = regard_command("patch", RIVER, MONEY, "--word", "bank", "--layers", "2,5", *files)
    assert done.returncode == 0, done.stderr
    assert "Fraction of the clean outcome restored by patching hidden states" in done.stdout
    written = json.loads((tmp_path / "a.json").read_text())
    assert (written["format"], written["layers"], written["columns"][7]) == ("regard patch", [2, 5], "bank 7")
    assert written["shares"][1][7] == pytest.approx(1.0, abs=1e-5)
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.browser
def test_it_writes_a_page(regard_command, tmp_path) -> None:
    done = regard_command("patch", RIVER, MONEY, "--word", "bank", "--layers", "5", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    page = Read(tmp_path / "a.html")
    assert [panel["name"] for panel in page.data["panels"]] == ["Patches"]
    assert page.data["panels"][0]["values"][0][7] == pytest.approx(1.0, abs=1e-5)


def test_heads_the_other_way_round(regard_command) -> None:
    given = ("--what", "head_outputs", "--noising", "--at", "bank", "--layers", "3")
    done = regard_command("patch", RIVER, MONEY, "--word", "bank", *given)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "Fraction of the way to the corrupted outcome after patching head outputs at “bank”" in shown


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([RIVER], "got 1 texts, expected two: regard patch CLEAN CORRUPTED --word W"),
        ([RIVER, MONEY], "--to (a next token) or --word"),
        ([RIVER, MONEY, "--word", "bank", "--to", "a"], "--to and --word: pass only one of them"),
        ([RIVER, MONEY, "--word", "bank", "--against", "a"], "--against needs --to"),
        ([RIVER, MONEY, "--word", "bank", "--what", "states"], "--what: got 'states', expected one of hidden_states"),
        ([RIVER, MONEY, "--word", "bank", "--target-text", "a"], "--target-text: got 1 for 2 text(s), expected one"),
        ([RIVER, MONEY, "--word", "bank", "--html", "a.htm"], "--html: cannot write 'a.htm'"),
        ([RIVER, MONEY, "--word", "bank", "--by", "rows"], "--by: got 'rows', expected one of positions, heads"),
        ([RIVER, MONEY, "--token", "a"], "No such option: --token"),  # what --to was called before
        ([RIVER, "A bank.", "--word", "bank"], "pass words of both as at="),
        ([RIVER, MONEY, "--to", "bank"], "has no language head: pass a cosine"),
    ],
)
def test_what_is_refused(regard_command, given, says) -> None:
    done = regard_command("patch", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
