"""Long pages are folded without a script; every section and row is still there."""

import pytest

from tests.support.pages import hook

pytestmark = pytest.mark.docs
folds = hook("folds")


def test_sections_fold_under_their_headings() -> None:
    page = '<h1>A</h1><p>first</p><h2 id="b">B</h2><p>x</p><h3>C</h3><h2 id="d">D</h2>'
    assert folds.folded(page) == (
        '<h1>A</h1><p>first</p><details class="fold"><summary><h2 id="b">B</h2></summary><p>x</p><h3>C</h3></details>\n'
        '<details class="fold"><summary><h2 id="d">D</h2></summary></details>\n'
    )
