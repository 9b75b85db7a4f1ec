"""Sentences about a translation say where its words come from, and nothing where the weights do not tell."""

import re
from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Attended, Share
from regard.questions.alignment.sentences import alignment_findings

TEXT, TARGET = "the white table stands", "la table blanche reste"


@pytest.fixture(scope="module")
def traced() -> Summary:
    from regard.text import tokenizers

    torch.manual_seed(5)
    words = tokenizers.words([TEXT, TARGET], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    return summarise([model.trace(TEXT, target=TARGET)], None)


def planted(summary: Summary, links: dict[str, tuple[str, float]], agreement: float = 0.7) -> Summary:
    """The same with each target token's row giving one source token a weight; others give all tokens 0.1."""
    assert summary.target is not None
    (alignment,) = summary.target.alignments
    source = [token.text for token in summary.tokens[0]]
    tokens = []
    for each in alignment.tokens:
        assert each.read is not None
        name, weight = links.get(each.text, ("", 0.0))
        shares = [Share(n, text, weight if text == name else 0.1) for n, text in enumerate(source[:4])]
        row = replace(each.read, top=sorted(shares, key=lambda share: -share.weight), special=0.0, sinks=[])
        tokens.append(replace(each, written=row))
    changed: Alignment = replace(alignment, tokens=tokens, agreement=agreement, written_layer=1, read_layer=0)
    return replace(summary, target=replace(summary.target, alignments=[changed]))


CLEAR = {"la": ("the", 0.4), "table": ("table", 0.8), "blanche": ("white", 0.7), "reste": ("stands", 0.5)}


def test_where_words_come_from(traced: Summary) -> None:
    said = alignment_findings(planted(traced, CLEAR))
    assert said == [
        "“table” comes from “table” (0.80), “blanche” comes from “white” (0.70) and “reste” comes from “stands” "
        "(0.50): by the weights of the cross-attention of layer 1, as each is written.",
        "The order changes: “table” stands before “blanche”, but comes from “table”, which stands after “white”.",
        "Least clear of the words is “la”: it looks at “the” (0.40) and “white” (0.10).",
        "Every word of the text is what some target token looks at most.",
        "Layer 1, as tokens are written, and layer 0, as they are read, agree well (0.70 of at most 1).",
    ]


def test_why_these_layers_and_no_others(traced: Summary) -> None:
    assert traced.target is not None
    (alignment,) = traced.target.alignments
    chosen = replace(alignment, written_layer=1, read_layer=0, agreement=0.7)
    views = "of 2 layers layer 1, as tokens are written, and layer 0, as they are read, agree most"
    assert why_these_layers(chosen) == f"{views}: here by 0.70 of at most 1"
    itself = "of 2 layers layer 1 agrees most with itself, as tokens are written and as they are read"
    assert why_these_layers(replace(chosen, read_layer=1)) == f"{itself}: here by 0.70 of at most 1"
    assert why_these_layers(replace(chosen, layers=[1], read_layer=1)).startswith("layer 1 agrees most with itself")
    assert why_these_layers(chosen, 3) == f"{views}, over the texts together: here by 0.70 of at most 1"


def test_an_order_that_is_kept(traced: Summary) -> None:
    kept = CLEAR | {"table": ("white", 0.8), "blanche": ("table", 0.7)}
    said = "The order of words is kept: of 4 links of 0.3 or more none crosses another."
    assert said in alignment_findings(planted(traced, kept))


def test_weights_that_tell_nothing(traced: Summary) -> None:
    said = alignment_findings(planted(traced, {}, agreement=0.01))
    assert said[0] == (
        "No target word has a clear source: none looks at one with 0.3 or more (cross-attention of layer 1)."
    )
    assert not any("order" in sentence for sentence in said)
    assert said[-1].endswith("agree hardly (0.010 of at most 1).")
    assert any(sentence == "No target token looks most at “white”, “table”, “stands”." for sentence in said)


def test_a_random_model(traced: Summary) -> None:
    assert traced.target is not None
    told = " ".join(alignment_findings(traced))
    weights = [f"{share.weight:.2f}" for each in traced.target.alignments[0].tokens if each.written is not None
               for share in each.written.top]  # fmt: skip
    assert all(number in weights for number in re.findall(r"\((0\.\d\d)\)", told))


def test_rows_that_look_at_special_tokens(traced: Summary) -> None:
    summary = planted(traced, CLEAR)
    assert summary.target is not None
    (alignment,) = summary.target.alignments
    rows: list[Attended] = [replace(each.written, special=0.6) for each in alignment.tokens if each.written is not None]
    tokens = [replace(each, written=row) for each, row in zip(alignment.tokens, rows, strict=True)]
    apart = replace(summary, target=replace(summary.target, alignments=[replace(alignment, tokens=tokens)]))
    assert "and more than half goes to special tokens or sinks" in " ".join(alignment_findings(apart))


def test_several_texts_share_the_screen(traced: Summary) -> None:
    one = planted(traced, CLEAR)
    assert one.target is not None
    (alignment,) = one.target.alignments
    other = replace(one.target.summary, tokens=one.target.summary.tokens * 4)
    many = replace(
        one, tokens=one.tokens * 4, labels=list("1234"),
        target=replace(one.target, summary=other, alignments=[replace(alignment, text=n) for n in range(4)]),
    )  # fmt: skip
    said = alignment_findings(many)
    assert len(said) == 5
    assert said[0].startswith("In text 1 “table” comes from")
    assert said[-1] == "2 more texts have tables of their own."
