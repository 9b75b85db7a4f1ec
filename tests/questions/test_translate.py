"""A translation's rows and JSON are its alignment's numbers; its page opens at the alignment, its picture is see's."""

from dataclasses import asdict
from pathlib import Path

import pytest

from regard.display.terminal_parts import plain_lines_of_parts
from regard.questions.see.alignment import MAX_ROWS
from regard.questions.see.answer import seen
from regard.questions.translate import Translation
from tests.support import own_models
from tests.support.own_models import translator


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
    assert told.count("as each token is written") == told.count("as it is read (layer") == 2
    assert "not shown" not in told
    for text in (*own_models.TEXTS[1:], *own_models.TARGETS[1:]):
        assert text in told


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_screen(width: int, count: int) -> None:
    text, target = "a bank of a river " * 8, "la rive du fleuve " * 8
    model = translator(text, target)
    found = seen(model.trace([text] * count, target=[target] * count), kind=Translation)
    lines = plain_lines_of_parts(found.shown(width, MAX_ROWS), width)
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
    for weight in weights[: MAX_ROWS // shown]:
        assert f"{weight:.2f}" in out or f"{weight:.3f}" in out
