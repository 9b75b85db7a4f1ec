"""Several pages become one."""

from regard.web.answers import answer_page
from regard.web.join_pages import joined
from tests.web.test_head_means import made as head_means
from tests.web.test_patch_sweep import made as sweep


def test_several_are_one_with_a_tab_for_each_panel() -> None:
    pages = [answer_page(found) for found in (sweep(), sweep(direction="noising"), head_means())]
    said = [
        f"{page.title}. {sentence}" if n == 0 else sentence
        for page in pages
        if page
        for n, sentence in enumerate(page.findings)
    ]
    page = joined([page for page in pages if page])
    assert page.title == "Patches between 'a river bank' and 'a money bank' (and 2 more)"
    assert list(page.findings) == said
    assert [panel["name"] for panel in page.panels][:5] == [
        "Patches", "Patch by patch", "Patches (2)", "Patch by patch (2)", "Overview"
    ]  # fmt: skip
    assert page.opening["view"] == "panel 0"
