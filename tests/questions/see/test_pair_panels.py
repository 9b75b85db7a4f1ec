"""Where targets look in texts: every weight is the alignment's, row by row."""

from pathlib import Path

import regard
from regard.questions.see.answer import seen
from regard.questions.see.pair_panels import across, looks
from tests.support.pairs import make_pair


def test_the_numbers_are_the_alignments(tmp_path: Path) -> None:
    make_pair(tmp_path)
    pair = regard.load(tmp_path, device="cpu").trace("the man on the river bank", target="un homme sur la rive")
    summary = seen([pair], "bank").summary
    (found,) = summary.target.alignments
    panel = looks(found, summary, screen=True)
    assert f"(layer {found.read_layer})" in panel.columns[2].name
    for row, own in zip(panel.rows, found.tokens, strict=True):
        assert row[0] == own.text
        assert (row[1] is None) == (own.written is None)
        assert [weight for _, weight in row[2].parts] == [share.weight for share in own.read.top[:2]]
        assert row[2].mark == "*" * (own.read.apart > 0.5)
    (table,) = across(summary, summary.target)
    assert table.title.startswith("Target tokens that attend to “bank” of text 1")
    for row, read in zip(table.rows, summary.target.to_words[0].read, strict=True):
        assert [weight for _, weight in row[2].parts] == [share.weight for share in read.top[:3]]
