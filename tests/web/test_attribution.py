"""The page of an outcome's parts: every number is the split's, and those of a grid sum to it."""

from typing import Any

import pytest

import regard
from regard.explain.findings.attribution import attribution_findings, exactness
from regard.web.attribution import attribution_page
from regard.web.html_file import script_json
from tests.support.pairs import make_pair

TEXT = "He sat on a river bank, fishing."


@pytest.fixture(scope="module")
def found(minilm: Any) -> Any:
    trace = minilm.trace(TEXT)
    return minilm.attribution(trace, "bank", toward=trace["river"])


def test_heads_are_a_grid_and_each_is_made_of_its_source_tokens(found: Any) -> None:
    page: Any = attribution_page(found).data()
    script_json(page)
    assert page["title"] == "What adds to the cosine to the direction at “bank”"
    heads, sources, layers, parts = page["panels"]
    assert [panel["name"] for panel in page["panels"]] == ["Heads", "Source tokens", "Layers", "All parts"]
    by_writer, by_token = dict(found.by()), dict(found.by("token"))
    assert (len(heads["rows"]), len(heads["columns"])) == (6, 12)
    tokens = heads["behind"]["texts"][0]["tokens"]
    for layer, row in enumerate(heads["values"]):
        for head, value in enumerate(row):
            assert value == pytest.approx(by_writer[f"layer {layer}, head {head}"], abs=1e-12)
            own = heads["behind"]["values"][layer][head]
            assert own == [
                pytest.approx(by_token.get(f"layer {layer}, head {head} from “{token}” ({n})", 0.0), abs=1e-12)
                for n, token in enumerate(tokens)
            ]
    by_source = dict(found.by("source"))
    assert sources["values"] == [
        pytest.approx(by_source[f"attention from “{token}” ({n})"], abs=1e-12) for n, token in enumerate(tokens)
    ]
    assert [row[0] for row in layers["rows"]] == [
        "embeddings, and biases of no layer", *(f"layer {n}" for n in range(6)), "all"
    ]  # fmt: skip
    assert layers["rows"][-1][-1] == found.value
    assert sum(row[-1] for row in layers["rows"][:-1]) == pytest.approx(found.value, abs=1e-6)
    for n, row in enumerate(layers["rows"][1:-1]):
        assert row[1] == pytest.approx(sum(heads["values"][n]), abs=1e-12)
        assert row[2] == pytest.approx(by_writer[f"layer {n}, feed-forward"], abs=1e-12)
    assert parts["rows"] == [[name, added] for name, added in found.by()]


def test_its_sentences_are_those_of_every_other_medium(found: Any) -> None:
    page = attribution_page(found)
    assert page.findings == attribution_findings(found)
    assert page.findings[0].startswith("The cosine to the direction at “bank” is +0.61: the sum of what was written")
    assert page.status[0].startswith("Computed with ")
    assert page.status[-1] == f"T{exactness(found)[1:]}."
    assert attribution_page(found, ["One."]).findings == ["One."]


def test_of_an_encoder_decoder_heads_across_look_at_the_source(tmp_path: Any) -> None:
    make_pair(tmp_path / "pair")
    model = regard.load(tmp_path / "pair")
    trace = model.trace("the man on the river bank", target="sur la rive")
    found = model.attribution(trace, 2, 5)
    page: Any = attribution_page(found).data()
    heads, source, target, *_ = page["panels"]
    sides = [[token.text for token in side.tokens] for side in trace.sides]
    by_writer = dict(found.by())
    assert {name.split()[0] for name in heads["rows"]} == {"decoder"}
    for row, (name, of) in enumerate(zip(heads["rows"], heads["behind"]["of"], strict=True)):
        across = name.endswith(", cross")
        assert heads["behind"]["texts"][of]["tokens"] == sides[0 if across else 1]
        layer = name.removeprefix("decoder ").removesuffix(", cross")
        for head, value in enumerate(heads["values"][row]):
            label = f"{layer}, {'cross ' * across}head {head} of the decoder"
            assert value == pytest.approx(by_writer[label], abs=1e-12)
            assert value == pytest.approx(sum(heads["behind"]["values"][row][head]), abs=1e-12)
    assert {panel["name"] for panel in (source, target)} == {
        "Source tokens of the encoder",
        "Source tokens of the decoder",
    }
    assert sum(sum(panel["values"]) for panel in (source, target)) == pytest.approx(
        sum(sum(row) for row in heads["values"]), abs=1e-12
    )
