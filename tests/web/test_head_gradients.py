"""The page of heads' numbers by one gradient, held against the numbers."""

from typing import Any

from regard.explain.causes.head_gradients import attribute_to_heads
from regard.explain.causes.outcomes import cosine
from regard.web.answers import answer_page
from regard.web.html_file import script_json
from tests.support import MONEY, RIVER


def test_every_head_and_what_it_took_from_each_token(minilm: Any, bank: Any) -> None:
    outcome = cosine("bank", bank[1]["bank"], "the money's bank")
    found = attribute_to_heads(minilm, bank[0], outcome)
    page: Any = answer_page(found).data()  # type: ignore[union-attr]
    script_json(page)
    grid, table = page["panels"]
    assert grid["values"] == [own.tolist() for own in found.scores]
    assert grid["rows"] == [f"layer {n}" for n in range(6)]
    assert grid["behind"]["texts"][0]["tokens"] == [token.text for token in bank[0].tokens]
    for layer, head in ((0, 0), (3, 11), (5, 7)):
        parts = grid["behind"]["values"][layer][head]  # float32 products, summed in another order than the score's
        assert abs(sum(parts) - grid["values"][layer][head]) <= 2**-20 * sum(map(abs, parts))
        assert grid["behind"]["values"][layer][head] == found.from_tokens(layer, head).tolist()
    assert table["rows"][0][1] == max((row[1] for row in table["rows"]), key=abs)
    assert len(table["rows"]) == 72


def test_beside_another_text_heads_do_not_split(minilm: Any) -> None:
    texts = RIVER.replace("river", "money"), RIVER
    own, other = minilm.trace(list(texts))
    found = attribute_to_heads(minilm, own, cosine("bank", other["bank"], "there"), baseline=other)
    page: Any = answer_page(found).data()  # type: ignore[union-attr]
    assert page["panels"][0]["behind"] is None
    assert "Click" not in page["panels"][0]["note"]
    assert MONEY not in page["title"]
