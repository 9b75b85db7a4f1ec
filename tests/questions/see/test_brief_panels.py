"""The tables of a first screen are those of the summary."""

from regard.explain.wording import called, short_head
from regard.questions.see.answer import seen
from regard.questions.see.brief_panels import ROWS, brief_panels


def test_links_are_those_of_every_text(bank) -> None:
    found = seen(bank)
    (table,) = brief_panels(found.summary)
    links = [(n, link) for n, own in enumerate(found.summary.highlights) for link in own.links[: ROWS // len(bank)]]
    for row, (n, link) in zip(table.rows, links, strict=True):
        tokens = found.summary.tokens[n]
        names = [called(link.query, tokens), called(link.key, tokens), short_head(link.layer, link.head)]
        assert row == [str(n + 1), *names, link.weight]
