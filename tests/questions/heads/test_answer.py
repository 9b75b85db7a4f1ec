"""The grids of heads over a corpus, held against their numbers."""

from pathlib import Path

import numpy as np

from regard.corpus.asking.head_means import OVER
from regard.display.picture import draw
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads.answer import Heads, of_corpus, page_of_means
from regard.web.answers import answer_page


def made() -> HeadMeans:
    scores = {name: np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.4]]) for name in OVER}
    scores["induction"] = np.full((3, 2), np.nan)
    return HeadMeans(scores, {"queries": 1234, "duplicates": 56, "inductions": 0})


def test_each_grid_shows_its_scores_on_the_common_scale(tmp_path: Path) -> None:
    found = made()
    found.scores["distance"][0, 0] = 30.0
    images = {image.get_gid(): image for axes in of_corpus(found).plot().axes for image in axes.images}
    assert set(images) == set(found.scores)
    for name, image in images.items():
        np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), found.scores[name])
        assert image.get_clim() == (0, 30.0 if name == "distance" else 0.9)
    answer = of_corpus(found)
    assert draw(answer.chosen(), answer.title(), tmp_path / "a.svg") == []
    assert (tmp_path / "a.svg").stat().st_size > 10_000


def test_rows_and_json_of_a_corpus_are_those_of_its_table() -> None:
    found, answer = made(), of_corpus(made())
    assert [row["previous"] for row in answer.rows()] == [row["previous"] for row in found.rows()]
    told = answer.to_json()
    assert (told["format"], told["counts"]) == ("regard stats", found.counts)
    both = Heads({"texts": found, "a test": found})
    assert [row["of"] for row in both.rows()] == ["texts"] * 6 + ["a test"] * 6
    tables = both.to_json()["tables"]
    assert isinstance(tables, dict)
    assert list(tables) == ["texts", "a test"]
    assert tables["texts"]["heads"] == told["heads"]


def test_the_page_of_a_stores_means_is_that_of_their_answer() -> None:
    page = answer_page(made())
    assert page is not None
    assert page.data() == page_of_means(made()).data() == of_corpus(made()).page().data()
