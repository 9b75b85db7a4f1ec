"""The layer of the bars is that in which words attend most to others; the head that links the word is named."""

import torch

from regard.explain.texts.summary import summarise
from regard.questions.see.looks import layer_looked_at
from regard.questions.see.sentences import findings, first_link


def test_the_layer_is_that_of_the_largest_weight_on_another_word(bank) -> None:
    summary = summarise(bank[:1], "bank")
    tokens, place = bank[0].tokens, layer_looked_at(summary)
    words = [n for n, t in enumerate(tokens) if not t.special and t.text.isalnum() and t.text != "bank"]
    rows = [float(bank[0].attention[n].dense().mean(0)[11, words].max()) for n in range(6)]
    assert tokens[11].text == "bank"
    assert place == rows.index(max(rows))


def test_the_head_is_that_of_the_weight_most_beyond_what_others_give(bank) -> None:
    """ "withdrawing" stands four tokens before; "the head before it" gives 0.9 to "a", whatever stands there."""
    link = first_link(summarise(bank[1:], "bank"))
    assert (link.text, link.layer, link.head) == ("withdrawing", 0, 0)
    dense = torch.stack([bank[1].attention[n].dense() for n in range(6)]).double()  # (layers, heads, 14, 14)
    rows = dense[0, 0]
    distance, key = [rows[q, q - 4] for q in range(4, 14) if q != 11], [rows[q, 7] for q in range(14) if q != 11]
    near = [rows[q, q - 4] for q in (7, 8, 9, 10, 12, 13)]
    assert abs(link.others - max(float(torch.stack(each).mean()) for each in (distance, key, near))) < 1e-6
    assert float(dense[:, :, 11, 10].max()) > 0.9  # the token before


def test_the_word_before_counts_where_it_is_what_the_head_looks_for(minilm) -> None:
    """ "river bank": attention to a neighbour says little, but not where other neighbours get much less."""
    link = first_link(summarise([minilm.trace("She walked along the river bank at dawn.")], "bank"))
    assert (link.text, link.layer, link.head, round(link.weight, 2)) == ("river", 0, 4, 0.83)


def test_how_many_tokens_are_named_elsewhere_changes_nothing(bank) -> None:
    """With --top 1 the one that was kept could be the word itself, so that nothing seemed to be looked at."""
    assert findings(summarise(bank, "bank", top=1)) == findings(summarise(bank, "bank", top=20))
