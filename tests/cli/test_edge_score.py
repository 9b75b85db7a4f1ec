"""`regard why --edge` as a person runs it."""

import json

import pytest

from regard.cli.edge_score import EdgeAsked
from regard.errors import RegardError
from tests.cli.verbs.test_see import refused
from tests.support import make_tiny, run_all_in_process
from tests.support.pairs import make_pair
from tests.support.web_pages import Read

TEXT = "a man on a river bank"


def test_why_a_head_looks_there(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    edge = ["why", TEXT, "--edge", "bank:river", "--model", "tiny"]
    result = regard_command(*edge, "--layer", "1", "--head", "-1", "--figure", "a.png", "--json", "a.json")
    assert result.returncode == 0, result.stderr
    assert "• In layer 1, head " in result.stdout
    assert "The largest pairs of what both hold" in result.stdout
    assert "within" in result.stdout
    assert "--all (8 more tables)" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "a.png").exists()
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (data["format"], data["edge"]["query"], data["edge"]["layer"]) == ("regard why --edge", "bank", 1)
    for by in ("writer", "layer", "source", "kind"):
        for name, whole in (
            ("score", data["edge"]["score"]),
            ("difference", data["edge"]["score"] - data["edge"]["mean"]),
        ):
            pairs = data["parts"][by][name]["pairs"]
            assert len(pairs) == len(data["parts"][by][name]["query_parts"])
            assert sum(map(sum, pairs)) == pytest.approx(whole, abs=1e-5)


def test_what_is_left_open_is_where_the_weight_is_largest(regard_command, minilm, tmp_path) -> None:
    import regard

    make_tiny(tmp_path / "tiny", minilm)
    trace = regard.load(tmp_path / "tiny").trace(TEXT)
    weights = [
        (float(each[head, 6, 5]), n, head)
        for n, each in enumerate(trace.attention)
        for head in range(len(each[:, 6, 5]))
    ]
    assert trace.tokens[6].text, trace.tokens[5].text == ("bank", "river")
    _, layer, head = max(weights)
    result = regard_command("why", TEXT, "--edge", "bank:5", "--model", "tiny", "--all", "--json", "a.json")
    assert result.returncode == 0, result.stderr
    edge = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["edge"]
    assert (edge["layer"], edge["head"], edge["key"]) == (layer, head, "river")
    assert "Each side with all of the other, by source token" in result.stdout


@pytest.mark.browser
def test_its_page_has_the_score_and_the_attention_of_the_text(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    edge = ["why", TEXT, "--edge", "bank:river", "--model", "tiny", "--layer", "1", "--head", "2"]
    result = regard_command(*edge, "--html", "a.html", "--html-with", "layers=1")
    assert result.returncode == 0, result.stderr
    page = Read(tmp_path / "a.html")
    assert page.data["title"].startswith("Why “bank” gives “river” 0.")
    assert page.data["opening"]["view"] == "panel 0"
    assert [call["layer"] for call in page.data["calls"]] == [1]
    assert [panel["name"] for panel in page.data["panels"]][:2] == ["By source token", "By layer"]


def test_of_an_encoder_decoder(tmp_path) -> None:
    make_pair(tmp_path / "pair")
    ask = ["why", "the man on the river bank", "--target", "sur la rive", "--model", "pair", "--edge"]
    cross, without = run_all_in_process(tmp_path, [[*ask, "rive:river", "--part", "cross"], [*ask, "rive:sur"]])
    assert cross[0] == 0, cross[2]
    assert "In cross-attention of layer" in cross[1]
    assert without[0] == 2
    assert "is an encoder-decoder: say which of part='encoder'" in without[2]


def test_bad_input(regard_command) -> None:
    refused(regard_command("why", "a bank", "--edge", "bank"), "--edge: given 'bank', needs two words and a colon")
    refused(regard_command("why", "a bank", "--edge", "a:"), "needs two words and a colon")
    refused(
        regard_command("why", "a bank", "--edge", "a:bank", "--word", "bank"), "--edge and --word: give one of them"
    )
    refused(regard_command("why", "a bank", "--word", "bank", "--layer", "1"), "--layer goes with --edge WORD:WORD")
    refused(regard_command("why", "a bank", "--edge", "a:bank", "--html", "a.htm"), "--html: cannot write 'a.htm'")
    refused(
        regard_command("why", "a bank", "--edge", "a:bank", "--part", "x"),
        "--part: given 'x', needs one of encoder, decoder, cross",
    )
    refused(regard_command("why", "a bank", "--edge", "a:bank", "--layer", "9"), "layer 9 is out of range")
    refused(regard_command("why", "a bank", "--edge", "a:bunk"), "the nearest are 'bank'")
    refused(regard_command("why", "a bank", "a river", "--edge", "a:bank"), "--edge: given 2 texts, needs one")


def test_the_two_words() -> None:
    question = EdgeAsked("bank : river", layer=2).question()
    assert (question.query, question.key, question.layer, question.head) == ("bank", "river", 2, None)
    with pytest.raises(RegardError, match="needs two words and a colon"):
        EdgeAsked("a:b:c").question()
