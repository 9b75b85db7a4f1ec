"""A translation's rows and JSON are its alignment's numbers; its page opens at the alignment, its picture is see's."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Share
from regard.explain.wording import number
from regard.questions.see.answer import seen
from regard.questions.translate import MOST_ROWS, Translation, alignment_findings
from tests.support import own_models
from tests.support.own_models import translator

TEXT, TARGET = "the white table stands", "la table blanche reste"
CLEAR = {"la": ("the", 0.4), "table": ("table", 0.8), "blanche": ("white", 0.7), "reste": ("stands", 0.5)}


@pytest.fixture(scope="module")
def found() -> Translation:
    traces = own_models.pair().trace(own_models.TEXTS[1:], target=own_models.TARGETS[1:])
    made = seen(traces, kind=Translation, top=3)
    assert isinstance(made, Translation)
    return made


def test_rows_are_what_each_target_token_looks_at_most(found: Translation) -> None:
    rows = found.rows()
    assert found.summary.target is not None
    for alignment in found.summary.target.alignments:
        for each in alignment.tokens:
            for name, row in (("written", each.written), ("read", each.read)):
                mine = [
                    (own["from_token"], own["from_text"], own["from_weight"], own["layer"]) for own in rows
                    if (own["text"], own["token"], own["as_it_is"]) == (str(alignment.text + 1), each.token, name)
                ]  # fmt: skip
                top = [] if row is None else row.top
                assert mine == [(share.token, share.text, share.weight, row and row.layer) for share in top]


def test_json_is_the_whole_summary_in_the_form_of_see(found: Translation) -> None:
    data = found.to_json()
    assert data["format"] == "regard see"
    assert data["findings"] == found.findings()
    assert data["target"]["alignments"][0]["weights"] == found.summary.target.alignments[0].weights  # type: ignore
    assert data.keys() >= asdict(found.summary).keys()


def test_the_page_opens_at_the_alignment_and_the_picture_shows_it(found: Translation, tmp_path: Path) -> None:
    page = found.page()
    assert page.opening["view"] == "overview"
    assert page.panels == []
    assert len(page.alignment) == 2
    assert found.draw(tmp_path / "a.png") == []
    assert (tmp_path / "a.png").stat().st_size > 0


def test_all_shows_both_views_of_every_token(found: Translation) -> None:
    lines = plain_lines_of_parts(found.shown(120, 1000, everything=True), 120)
    told = "\n".join(lines)
    assert told.count("Cross-attention from target") == 2
    assert "Not shown" not in told
    for text in (*own_models.TEXTS[1:], *own_models.TARGETS[1:]):
        assert text in told


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_screen(width: int, count: int) -> None:
    text, target = "a bank of a river " * 8, "la rive du fleuve " * 8
    model = translator(text, target)
    found = seen(model.trace([text] * count, target=[target] * count), kind=Translation)
    lines = plain_lines_of_parts(found.shown(width, MOST_ROWS), width)
    out = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    told = " ".join(out.split())
    words = [word for line in lines[2 : lines.index("")] for word in line.split()]
    assert sorted(words) == sorted([*text.split(), *target.split()]) or count > 1
    assert ("3 more texts" in told) == (count > 2)
    alignment = found.summary.target.alignments[0]
    shown = min(count, 2)
    weights = sorted((each.written.top[0].weight for each in alignment.tokens[1:-1]), reverse=True)
    for weight in weights[: MOST_ROWS // shown]:
        assert f"{weight:.2f}" in out or f"{weight:.3f}" in out


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
    assert "special tokens" not in alignment_findings(planted(traced, CLEAR, special=0.1))[0]
    assert "special tokens" in alignment_findings(planted(traced, CLEAR, special=0.9))[0]


def test_why_these_layers_and_no_others(traced: Summary) -> None:
    (alignment,) = planted(traced, CLEAR).target.alignments  # type: ignore[union-attr]
    both = why_these_layers(alignment)
    assert all(part in both for part in ("layer 1", "layer 0", number(0.7)))
    assert "layer 0" not in why_these_layers(replace(alignment, read_layer=1))
    assert "all texts" in why_these_layers(alignment, 3)
    assert "all texts" not in both
