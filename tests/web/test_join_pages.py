"""Several pages become one."""

from regard.web.join_pages import join_pages_into_one
from tests.questions.heads.test_answer import answer_of
from tests.questions.patch.test_panels import made as sweep


def test_several_are_one_with_a_tab_for_each_panel() -> None:
    pages = [found.page() for found in (sweep(), sweep(direction="noising"), answer_of(mean_scores_of()))]
    said = [
        f"{page.title}. {sentence}" if n == 0 else sentence
        for page in pages
        if page
        for n, sentence in enumerate(page.findings)
    ]
    page = join_pages_into_one([page for page in pages if page])
    assert page.title == f"{sweep().title()} (and 2 more)"
    assert list(page.findings) == said
    assert [panel["name"] for panel in page.panels][:5] == [
        "Patches", "Patch by patch", "Patches (2)", "Patch by patch (2)", "previous"
    ]  # fmt: skip
    assert page.opening["view"] == "panel 0"
