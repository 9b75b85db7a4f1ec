"""A long text's matrix fits one screen, and every pair is shown where it stands in the text."""

import pytest

from regard.explain.findings.matrix import matrix_findings
from regard.explain.matrices.matrix import Place, matrix
from regard.views.terminal.matrix import MOST_ROWS, _inside, show_matrix_shortly
from tests.support import RIVER
from tests.support.terminal import printed

TEXT = "The old man went to the river bank, and fished there for many days; the bank of the town was closed.\n" * 12


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(minilm, width: int) -> None:
    found = matrix(minilm.trace(TEXT, layers=[2]), 2)
    out = printed(show_matrix_shortly, found, "page.txt", width=width)
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    told = " ".join(out.split())
    place = 0
    for sentence in matrix_findings(found):
        place = told.index(sentence, place)
    assert told.index("more: --all") > told.index(" apart looks at ") > place
    assert f"{len(found.pairs) - MOST_ROWS} more pairs with --all" in told
    assert sum("‹" in line for line in lines) == MOST_ROWS


def test_without_far_pairs_it_is_who_receives_most(minilm) -> None:
    out = printed(show_matrix_shortly, matrix(minilm.trace(RIVER), 2), "a text")
    assert "Tokens that receive most" in out
    assert "‹" not in out


def test_a_token_in_its_text() -> None:
    text = "one two\n\nbank three four five six seven"
    place = Place(2, "bank", 9, 13, text)
    assert _inside(place, 20).plain == "ne two ‹bank› three "
    assert _inside(Place(0, "one", 0, 3, text), 14).plain == "‹one› two bank"
    assert _inside(Place(9, "[SEP]", 39, 39, text), 12).plain == "‹[SEP]›"
    assert len(_inside(place, 8).plain) <= 8
