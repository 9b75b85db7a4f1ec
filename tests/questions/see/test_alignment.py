"""The alignment's tables have its numbers, and its sentences name the links of a followed word and crossing words."""

from dataclasses import replace
from typing import Any

import pytest

from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Share
from regard.explain.wording import number
from regard.questions.see.alignment import alignment_sentences, alignment_tables, cross_attention_tables
from regard.questions.see.answer import seen
from tests.support.own_models import translator

TEXT, TARGET = "the white table stands", "la table blanche reste"
CLEAR = {"la": ("the", 0.4), "table": ("table", 0.8), "blanche": ("white", 0.7), "reste": ("stands", 0.5)}


def test_the_numbers_are_the_alignments(tiny_pair: Any) -> None:
    pair = tiny_pair.trace("the man on the river bank", target="un homme sur la rive")
    summary = seen([pair], "bank").summary
    assert summary.target is not None
    (found,) = summary.target.alignments
    (panel,) = alignment_tables(summary)
    assert f"(layer {found.written_layer}, " in panel.title
    assert f"(layer {found.read_layer})" in panel.columns[-1].name
    for row, own in zip(panel.rows, found.tokens[1:], strict=True):
        assert row[0] == own.text + " *" * (own.written.apart > 0.5)
        assert [row[2], *(weight for _, weight in row[3].parts)] == [share.weight for share in own.written.top[:3]]
        assert [weight for _, weight in row[4].parts] == [share.weight for share in own.read.top[:2]]
        assert [cell.mark for cell in row[3:]] == ["", "*" * (own.read.apart > 0.5)]
    (table,) = cross_attention_tables(summary, summary.target)
    assert table.title.startswith("Target tokens that attend to “bank” of text 1")
    for row, read in zip(table.rows, summary.target.to_words[0].read, strict=True):
        assert [weight for _, weight in row[2].parts] == [share.weight for share in read.top[:3]]


@pytest.fixture(scope="module")
def traced() -> Summary:
    model = translator(TEXT, TARGET)
    return summarise([model.trace(TEXT, target=TARGET)], None)


def planted(summary: Summary, links: dict[str, tuple[str, float]], special: float = 0.0) -> Summary:
    """The same with each target token's row giving one source token a weight; others give all tokens 0.1."""
    assert summary.target is not None
    (alignment,) = summary.target.alignments
    source = [token.text for token in summary.tokens[0]]
    tokens = []
    for each in alignment.tokens:
        name, weight = links.get(each.text, ("", 0.0))
        shares = [Share(n, text, weight if text == name else 0.1) for n, text in enumerate(source[:4])]
        row = replace(each.read, top=sorted(shares, key=lambda share: -share.weight), special=special, sinks=[])
        tokens.append(replace(each, written=row))
    changed: Alignment = replace(alignment, tokens=tokens, agreement=0.7, written_layer=1, read_layer=0)
    return replace(summary, target=replace(summary.target, alignments=[changed]))


def test_rows_that_attend_to_special_tokens(traced: Summary) -> None:
    assert "special tokens" not in alignment_sentences(planted(traced, CLEAR, special=0.1))[0]
    assert "special tokens" in alignment_sentences(planted(traced, CLEAR, special=0.9))[0]


def test_sentences_of_one_text_and_of_a_followed_word(traced: Summary) -> None:
    told = alignment_sentences(planted(traced, CLEAR))
    assert told == [
        "Writing “table”, the model attends most to “table” (0.80) and, for “blanche”, to “white” (0.70).",
        "The word order changes: the translation has “table” before “blanche”, while the source has “white” before "
        "“table”.",
    ]
    less = planted(traced, CLEAR | {"la": ("table", 0.2)})
    assert alignment_sentences(less)[-1] == "No word of the translation attends most to “the”."
    model = translator(TEXT, TARGET)
    followed = planted(summarise([model.trace(TEXT, target=TARGET)], "reste"), CLEAR)
    assert alignment_sentences(followed) == ["Writing “reste”, the model attends most to “stands” (0.50)."]


def test_a_requested_layer_and_head_are_named(traced: Summary) -> None:
    summary = planted(traced, CLEAR)
    (alignment,) = summary.target.alignments  # type: ignore[union-attr]
    for changes, where in (
        ({"head": 2}, "In layer 1, head 2, writing “table”"),
        ({"read_layer": 1}, "In layer 1, writing “table”"),
        ({"read_layer": 1, "head": 0}, "In layer 1, head 0, writing “table”"),
    ):
        target = replace(summary.target, alignments=[replace(alignment, **changes)])  # type: ignore[type-var]
        assert alignment_sentences(replace(summary, target=target))[0].startswith(where)


def test_the_asterisk_is_at_the_target_and_explained(traced: Summary) -> None:
    for special, marked in ((0.9, True), (0.1, False)):
        summary = planted(traced, CLEAR, special=special)
        (alignment,) = summary.target.alignments  # type: ignore[union-attr]
        tokens = [replace(token, read=replace(token.read, special=0.0, sinks=[])) for token in alignment.tokens]
        tokens = [replace(t, written=t.written and replace(t.written, top=t.written.top[:1])) for t in tokens]
        target = replace(summary.target, alignments=[replace(alignment, tokens=tokens)])  # type: ignore[type-var]
        (table,) = alignment_tables(replace(summary, target=target))  # a single source token for each target token
        assert {str(row[0]).endswith(" *") for row in table.rows} == {marked}
        assert table.note.startswith("*:") is marked


def test_blank_tokens_are_visible(traced: Summary) -> None:
    summary = planted(traced, CLEAR)
    (alignment,) = summary.target.alignments  # type: ignore[union-attr]
    tokens = [replace(token, text=" ") for token in alignment.tokens]
    target = replace(summary.target, alignments=[replace(alignment, tokens=tokens)])  # type: ignore[type-var]
    (table,) = alignment_tables(replace(summary, target=target))
    assert {row[0] for row in table.rows} == {"␣"}


def test_why_these_layers_and_no_others(traced: Summary) -> None:
    (alignment,) = planted(traced, CLEAR).target.alignments  # type: ignore[union-attr]
    both = why_these_layers(alignment)
    assert all(part in both for part in ("layer 1", "layer 0", number(0.7)))
    assert "layer 0" not in why_these_layers(replace(alignment, read_layer=1))
    assert "all texts" in why_these_layers(alignment, 3)
    assert number(0.7) not in why_these_layers(alignment, 3)  # of one text
    assert "all texts" not in both
