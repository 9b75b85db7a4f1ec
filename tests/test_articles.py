"""The pages on four articles: each runs, keeps its article's order, and takes printed figures from their one place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from drawings.printed import PRINTED, printed
from tests.support import ROOT, SHARED
from tests.test_lessons import run

FOLDER = ROOT / "docs" / "articles"
ORDER = {  # the sections of each article, by a word of ours or its number, and how many of its figures the page holds
    "one_sentence": (
        ["Self-attention", "Embedding", "Defining", "unnormalised", "scores", "Multi-head", "Cross", "Conclusion"], 137,
    ),
    "contextual_embeddings": (["1 ", "2 ", "3 ", "4 ", "5 "], 30),
    "formula": (
        ["tokens", "vectors", "encoder", "M", "Self-", "Scaled", "root", "Back", "picture", "notice", "Multi", "over"],
        0,
    ),
    "river_and_finance": (["two texts", "without", "ocality", "smallest", "projections", "recipe", "class"], 96),
}  # fmt: skip


def test_each_page_has_its_articles_sections_in_order_and_leads_further() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(ORDER)
    for name, (sections, _) in ORDER.items():
        text = (FOLDER / f"{name}.py").read_text("utf-8")
        headings = re.findall(r"^# ## (.*)$", text, re.M)
        assert len(headings) == len(sections)
        assert all(word in heading for word, heading in zip(sections, headings, strict=True))
        links = re.findall(r"\]\((\.\./[^)]+)\)", text)
        assert len(links) >= len(headings) - 1
        assert [link for link in links if not (FOLDER / link).is_file()] == []


def test_numbered_parts_of_the_longest_article_come_in_order() -> None:
    text = (FOLDER / "contextual_embeddings.py").read_text("utf-8")
    numbers = re.findall(r"^# ### (\d\.\d) ", text, re.M)
    assert numbers == sorted(numbers)
    assert {"1.1", "1.6", "2.1", "2.5", "3.1", "3.7", "4.1", "4.8"} <= {*numbers}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/learn.md"])
def test_home_and_readme_name_all_four(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert {*re.findall(r"articles/(\w+)\.py", text)} == set(ORDER)


def figures(found: Any) -> set[str]:
    """The numbers of three decimals and more that an article prints."""
    if isinstance(found, dict | list):
        return {each for part in (found.values() if isinstance(found, dict) else found) for each in figures(part)}
    return {str(abs(found))} if isinstance(found, float) and len(str(found).partition(".")[2]) >= 3 else set()


RECORDED = {  # where the figures of the articles were first written down, beside the checkout
    "one sentence": "one_sentence_step_by_step",
    "contextual embeddings": "text_to_contextual_embeddings",
    "formula": "attention_from_its_formula",
    "river and finance": "river_and_finance",
}


def is_recorded(ours: object, theirs: object) -> bool:
    """Whether all that we have is there, to the last digit."""
    if isinstance(ours, dict):
        return isinstance(theirs, dict) and all(is_recorded(ours[name], theirs.get(name)) for name in ours)
    return ours == theirs


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "expected").is_dir(), reason="no recorded figures beside the checkout")
@pytest.mark.parametrize("article", RECORDED)
def test_printed_figures_are_the_recorded_ones(article: str) -> None:
    recorded = json.loads((SHARED / "expected" / f"{RECORDED[article]}.json").read_text("utf-8"))
    ours = printed(article)
    assert ours.pop("source", "") in recorded["source"]  # there in quotes
    for corners in ("learned_corners", "contextual_corners"):  # of a model that is not there
        ours.get("pretrained", {}).pop(corners, None)
    assert ours
    assert is_recorded(ours, recorded)


def test_printed_figures_have_no_second_copy() -> None:
    known = figures([printed(each) for each in ("one sentence", "contextual embeddings", "river and finance")])
    assert len(known) > 200
    for page in [*FOLDER.glob("*.py"), *(ROOT / "docs" / "lessons").glob("*.py")]:
        lists = re.findall(r"\[[-\d., ]+\]", page.read_text("utf-8"))
        copied = [each for each in lists if len(known & {*re.findall(r"\d+\.\d+", each)}) > 1]
        assert copied == [], page.name


@pytest.mark.long
@pytest.mark.parametrize("name", ORDER)
def test_each_page_runs_and_holds_the_printed_figures(name: str, tmp_path: Path) -> None:
    done = run(FOLDER / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(map(int, re.findall(r"the same to \d decimals: (\d+) of \1\n", done.stdout))) == ORDER[name][1]


@pytest.mark.long
def test_a_figure_that_differs_stops_the_page(tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    text = PRINTED.read_text("utf-8")
    assert text.count("[0.957, 0.314, 0.256]") == 1
    (tmp_path / "changed.json").write_text(text.replace("[0.957, 0.314, 0.256]", "[0.957, 0.314, 0.257]"), "utf-8")
    before = "import pathlib\nimport drawings.printed\ndrawings.printed.PRINTED = pathlib.Path('changed.json')\n"
    changed.write_text(before + (FOLDER / "river_and_finance.py").read_text("utf-8"), "utf-8")
    done = run(changed, tmp_path)
    assert done.returncode == 1
    assert "Greatest absolute difference: 0.00" in done.stderr
