"""`regard why` as a person runs it."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

import regard.questions.why.causes
from regard.cli.verb import verb_of_question
from regard.errors import RegardError
from regard.questions.why.query import ScoreQuery, WhyQuery
from tests.questions.see.test_query import refused
from tests.support import make_tiny, run_all_in_process
from tests.support.classifiers import classifier
from tests.support.own_models import TEXTS, opened, pair
from tests.support.pairs import make_pair
from tests.support.web_pages import Read


def test_rankings(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    result = regard_command("why", "a man on a river bank", "--word", "bank", "--model", "tiny", "--top", "3", "--full")
    assert result.returncode == 0, result.stderr
    assert "Tokens by effect on “bank”" in result.stdout
    assert "Heads by effect on “bank”" in result.stdout
    assert "Rank correlation with the effect: mean weight" in result.stdout
    assert "more rows (see --json)" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_labels_of_a_classifier_and_two_texts(regard_command, tmp_path) -> None:
    for name, head in (("whole", "SequenceClassification"), ("tokens", "TokenClassification")):
        model = classifier("Bert", head)
        model.model.save_pretrained(tmp_path / name)
        model.tokenizer.save_pretrained(tmp_path / name)
    given = ("why", "a river bank", "--second", "a man", "--to", "POSITIVE", "--model", "whole", "--json", "a.json")
    result = regard_command(*given, "--save", "a.safetensors", "--html", "a.html")
    assert result.returncode == 0, result.stderr
    assert "Effect of ablating each token on the logit of “POSITIVE” (full bar" in result.stdout
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    jsonschema.validate(data, json.loads(files("regard.questions.why").joinpath("why.schema.json").read_text("utf-8")))
    assert (data["texts"], data["words"][0]["to"]) == (["a river bank\na man"], "POSITIVE")
    again = regard_command("why", "--open", "a.safetensors", "--model", "whole", "--to", "POSITIVE")
    assert again.stdout.partition("\n\n")[0] == result.stdout.partition("\n\n")[0]
    word = regard_command("why", "a river bank", "--word", "river", "--to", "neutral", "--model", "tokens")
    assert "on the logit of “NEUTRAL” at “river”" in word.stdout, word.stderr
    seen = regard_command("see", "a river bank", "--second", "a man", "--word", "man", "--model", "tokens", "--full")
    assert "“river” (text 1) contributes most to “man”" in seen.stdout, seen.stderr
    assert "likeliest labels with probability" in seen.stdout
    for more, model in ((("--to", "POSITIVE"), "whole"), (("--to", "POSITIVE", "--at", "man"), "tokens")):
        found = regard_command("attribute", "a river bank", "--second", "a man", *more, "--model", model)
        assert "Contributions to the logit of “POSITIVE”" in found.stdout, found.stderr
    needs = "expected a label of the model: 'NEGATIVE', 'NEUTRAL', 'POSITIVE'"
    refused(regard_command("why", "a bank", "--to", "SAD", "--model", "whole"), needs)
    refused(regard_command("attribute", "a bank", "--to", "SAD", "--model", "whole"), needs)
    refused(regard_command("why", "a", "--second", "b", "--second", "c", "--to", "x"), "--second: got 2 for 1 text")
    refused(regard_command("why", "a", "--edge", "a:a", "--to", "x"), "--edge and --to: pass one of them")


def test_bad_input(regard_command) -> None:
    refused(regard_command("why"), "no text given")
    refused(regard_command("why", "a bank"), "--word is needed")
    refused(regard_command("why", "a bank", "--word", "bunk"), "the nearest are 'bank'")
    refused(regard_command("why", "a bank", "--word", "bank", "--top", "0"), "--top: got 0")
    refused(regard_command("why", "a bank", "--word", "bank", "--json", "a.txt"), "file name must end in .json")


def test_the_27th_occurrence_is_aa(tmp_path, minilm, monkeypatch, capsys) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    made, explain = [], regard.questions.why.causes.why

    def once(*given: Any, **options: Any) -> Any:  # labels are looked at: one occurrence's cuts do for all of them
        made[:] = made or [explain(*given, **options)]
        return made[0]

    monkeypatch.setattr("regard.questions.why.causes.why", once)
    verb_of_question("why", WhyQuery)(
        texts=["bank " * 28], word="bank", model=str(tmp_path / "tiny"), top=1, everything=True
    )
    told = capsys.readouterr().out
    found = [line.partition(" in text ")[2] for line in told.splitlines() if line.startswith("Heads by effect")]
    assert found == [f"1{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + ["1aa", "1ab"]


def test_a_saved_trace_is_traced_again_by_the_model_that_made_it(tmp_path, minilm) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    regard.load(tmp_path / "tiny").trace("a man on a river bank").save(tmp_path / "a.safetensors")
    why = ["why", "--word", "bank", "--top", "3", "--full"]
    opened, by_tiny = [*why, "--open", "a.safetensors"], ["--model", "tiny"]
    given, again, other = run_all_in_process(
        tmp_path, [[*why, "a man on a river bank", *by_tiny], [*opened, *by_tiny], opened]
    )
    assert again[0] == given[0] == 0, again[2]
    assert _timeless(again[1]) == _timeless(given[1])
    assert other[0] == 2
    assert "trace 1 differs from a trace of all-MiniLM-L6-v2: pass its model, --model M" in other[2]


def test_a_word_of_a_target(tmp_path) -> None:
    make_pair(tmp_path / "pair")
    texts = ["why", "the man on the river bank", "--model", "pair", "--word", "rive", "--top", "2", "--full"]
    saved = ["--json", "why.json", "--save", "a.safetensors"]
    (code, out, err), (code_2, out_2, err_2) = run_all_in_process(
        tmp_path, [[*texts, "--target-text", "sur la rive", *saved], [*texts[:-5], "--word", "man", "--full"]]
    )
    assert code == 0, err
    assert "Heads by effect on “rive”" in out
    assert "Wrote why.json" in out
    data = json.loads((tmp_path / "why.json").read_text(encoding="utf-8"))
    schema = json.loads(files("regard.questions.why").joinpath("why.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    (word,) = data["words"]
    assert (word["word"], word["side"], data["targets"], data["generated"]) == (
        "rive",
        "target",
        ["sur la rive"],
        [False],
    )
    assert {cause["part"] for cause in word["tokens"]} == {"decoder", "cross"}
    assert len(word["heads"]) == 2 * 3 * 3
    assert regard.open(tmp_path / "a.safetensors")[0].decoder.text == "sur la rive"
    again = ["why", "--open", "a.safetensors", "--word", "rive", "--top", "2", "--full"]
    (code_3, out_3, err_3), refused_3 = run_all_in_process(tmp_path, [[*again, "--model", "pair"], again])
    assert code_3 == 0, err_3
    assert _timeless(out_3) == _timeless(out.split("Wrote why.json")[0])
    assert refused_3[0] == 2
    assert "doesn't fit all-MiniLM-L6-v2: pass its model, --model M" in refused_3[2]
    assert code_2 == 0, err_2  # the model writes a target itself, and that is said
    assert "The model wrote the target itself: 1: " in out_2
    assert "Tokens by effect on “man”" in out_2


def _timeless(told: str) -> list[str]:
    return [line for line in told.split("\n") if not line.startswith("Model: ")]


def test_what_tokens_are_ranked_by(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    given = ["why", "a man on a river bank", "--word", "bank", "--model", "tiny", "--json", "why.json"]
    result = regard_command(*given, "--method", "weight")
    assert result.returncode == 0, result.stderr
    assert "Tokens by attention weight from “bank”" in result.stdout
    (word,) = json.loads((tmp_path / "why.json").read_text(encoding="utf-8"))["words"]
    weights = [cause["weight"] for cause in word["tokens"]]
    assert (word["tokens_by"], weights) == ("weight", sorted(weights, reverse=True))
    refused(regard_command(*given, "--method", "rollout"), "--method: got 'rollout', expected one of removal, edges")
    edge = ["why", "a man on a river bank", "--edge", "bank:river", "--method", "edges"]
    refused(regard_command(*edge), "--method goes with --word")


EDGE_TEXT = "a man on a river bank"


def test_why_a_head_looks_there(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    edge = ["why", EDGE_TEXT, "--edge", "bank:river", "--model", "tiny"]
    result = regard_command(*edge, "--layer", "1", "--head", "-1", "--figure", "a.png", "--json", "a.json")
    assert result.returncode == 0, result.stderr
    assert "• “bank” attends to “river” in layer 1, head " in " ".join(result.stdout.split())
    assert "pairs of components in the score from “bank” to “river”" in " ".join(result.stdout.split())
    assert "within" in result.stdout
    assert "--full (4 more tables)" in result.stdout
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


def test_an_edge_is_asked_where_its_weight_is_largest(regard_command, minilm, tmp_path) -> None:
    import regard

    make_tiny(tmp_path / "tiny", minilm)
    trace = regard.load(tmp_path / "tiny").trace(EDGE_TEXT)
    weights = [
        (float(each[head, 6, 5]), n, head)
        for n, each in enumerate(trace.attention)
        for head in range(len(each[:, 6, 5]))
    ]
    assert trace.tokens[6].text, trace.tokens[5].text == ("bank", "river")
    _, layer, head = max(weights)
    result = regard_command("why", EDGE_TEXT, "--edge", "bank:5", "--model", "tiny", "--full", "--json", "a.json")
    assert result.returncode == 0, result.stderr
    edge = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["edge"]
    assert (edge["layer"], edge["head"], edge["key"]) == (layer, head, "river")
    assert "of components in the score from “bank” to “river”" in " ".join(result.stdout.split())


@pytest.mark.browser
def test_its_page_has_the_score_and_the_attention_of_the_text(regard_command, minilm, tmp_path) -> None:
    make_tiny(tmp_path / "tiny", minilm)
    edge = ["why", EDGE_TEXT, "--edge", "bank:river", "--model", "tiny", "--layer", "1", "--head", "2"]
    result = regard_command(*edge, "--html", "a.html", "--html-with", "layers=1")
    assert result.returncode == 0, result.stderr
    page = Read(tmp_path / "a.html")
    assert page.data["title"].startswith("Why “bank” attends to “river” in layer 1, head 2 (weight 0.")
    assert page.data["opening"]["view"] == "panel 0"
    assert [call["layer"] for call in page.data["calls"]] == [1]
    assert [panel["name"] for panel in page.data["panels"]][:2] == ["By source token", "By layer"]


def test_an_edge_of_an_encoder_decoder(tmp_path) -> None:
    make_pair(tmp_path / "pair")
    ask = ["why", "the man on the river bank", "--target-text", "sur la rive", "--model", "pair", "--edge"]
    cross, without = run_all_in_process(tmp_path, [[*ask, "rive:river", "--part", "cross"], [*ask, "rive:sur"]])
    assert cross[0] == 0, cross[2]
    assert "in cross-attention of layer" in " ".join(cross[1].split())
    assert without[0] == 2
    assert "is an encoder-decoder: choose part='encoder'" in without[2]


def test_bad_input_of_an_edge(regard_command) -> None:
    refused(regard_command("why", "a bank", "--edge", "bank"), "--edge: got 'bank', expected two words and a colon")
    refused(regard_command("why", "a bank", "--edge", "a:"), "expected two words and a colon")
    refused(
        regard_command("why", "a bank", "--edge", "a:bank", "--word", "bank"), "--edge and --word: pass one of them"
    )
    refused(regard_command("why", "a bank", "--word", "bank", "--layer", "1"), "--layer goes with --edge WORD:WORD")
    refused(regard_command("why", "a bank", "--edge", "a:bank", "--html", "a.htm"), "--html: cannot write 'a.htm'")
    refused(
        regard_command("why", "a bank", "--edge", "a:bank", "--part", "x"),
        "--part: got 'x', expected one of encoder, decoder, cross",
    )
    refused(regard_command("why", "a bank", "--edge", "a:bank", "--layer", "9"), "there is no such layer; there are 6")
    refused(regard_command("why", "a bank", "--edge", "a:bunk"), "the nearest are 'bank'")
    refused(regard_command("why", "a bank", "a river", "--edge", "a:bank"), "--edge: got 2 texts, expected one")


def test_the_two_words() -> None:
    score = WhyQuery(edge="bank : river").score
    assert score is not None
    assert (score.query, score.key) == ("bank", "river")
    with pytest.raises(RegardError, match="expected two words and a colon"):
        _ = WhyQuery(edge="a:b:c").score


def test_what_is_refused_without_a_model() -> None:
    asked = ScoreQuery(query="bank", key=5)
    asked.check(1)
    with pytest.raises(RegardError, match="got 2 texts, expected one"):
        asked.check(2)
    with pytest.raises(RegardError, match="--key is needed: a word or a token's number"):
        ScoreQuery(query="bank").check(1, called=lambda field: f"--{field}")
    with pytest.raises(RegardError, match="query is empty"):
        ScoreQuery(query=" ", key=5).check(1)
    with pytest.raises(RegardError, match="part: got 'x', expected one of encoder, decoder, cross"):
        ScoreQuery(query=1, key=2, part="x").check(1)


@pytest.mark.parametrize(("layer", "head"), [(None, None), (1, None), (None, 2), (0, 1)])
def test_what_is_left_open_is_where_the_weight_is_largest(layer: int | None, head: int | None) -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    found = ScoreQuery(query=5, key=3, layer=layer, head=head).answer(model, [trace])
    weights: dict[Any, float] = {
        (n, h): float(trace.attention[n][h, 5, 3])
        for n in range(len(trace.attention))
        for h in range(trace.attention[n].query.shape[1])
        if layer in (None, n) and head in (None, h)
    }
    assert (found.layer, found.head) == max(weights, key=lambda place: weights[place])
    assert found.weight == pytest.approx(max(weights.values()))
    assert (found.query, found.key) == (trace.tokens[5].text, trace.tokens[3].text)


def test_of_a_pair_the_key_is_of_the_text() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    found = ScoreQuery(query=2, key="river", layer=1, head=0, part="cross").answer(model, [trace])
    assert found.key == "river"
    assert found.about.texts == ((TEXTS[0], "Un homme"),)
