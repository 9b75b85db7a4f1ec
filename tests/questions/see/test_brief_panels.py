"""The tables of a first screen choose the layers that tell most."""

from dataclasses import replace

from regard.questions.see.answer import seen
from regard.questions.see.brief_panels import LAYERS, brief_panels
from regard.questions.see.looks import given_to_others


def test_of_a_deep_model_the_layers_in_which_most_happens(bank) -> None:
    summary = seen([bank[0]], "bank").summary
    own = summary.occurrences[0]
    deep = replace(summary, occurrences=[replace(own, attends=[*own.attends, *own.attends])])
    table = brief_panels(deep)[0]
    assert len(table.rows) == LAYERS
    assert f"{12 - LAYERS} layers in which they look at other words less are left out" in table.note
    most = given_to_others(deep)
    kept = sorted(most, reverse=True)[: LAYERS - 1]
    assert all(most[place] in kept or place == 11 for place in range(12) if most[place] > kept[-1])


def test_links_are_those_of_every_text(bank) -> None:
    found = seen(bank)
    (table,) = brief_panels(found.summary)
    links = [link for each in found.summary.highlights for link in each.links[: 8 // len(bank)]]
    assert [row[-1] for row in table.rows] == [link.weight for link in links]
    assert table.rows[0][1:3] == [f"{links[0].query_text} ({links[0].query})", f"{links[0].key_text} ({links[0].key})"]
