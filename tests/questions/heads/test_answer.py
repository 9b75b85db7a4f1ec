"""The grids of heads over a corpus, held against their numbers."""

from pathlib import Path

import numpy as np

from regard.corpus.store import SCORES
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads.answer import Heads


def made() -> HeadMeans:
    scores = {name: np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.4]]) for name in SCORES}
    scores["induction"] = np.full((3, 2), np.nan)
    return HeadMeans(scores, {"queries": 1234, "duplicates": 56, "inductions": 0})


def test_each_grid_shows_its_scores_on_the_common_scale(tmp_path: Path) -> None:
    found = made()
    found.scores["distance"][0, 0] = 30.0
    images = {image.get_gid(): image for axes in Heads({"corpus": found}).plot().axes for image in axes.images}
    assert set(images) == set(found.scores)
    for name, image in images.items():
        np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), found.scores[name])
        assert image.get_clim() == (0, 30.0 if name == "distance" else 0.9)
    answer = Heads({"corpus": found})
    assert answer.draw(tmp_path / "a.svg") == []
    assert (tmp_path / "a.svg").stat().st_size > 10_000


def test_rows_and_json_are_those_of_each_table() -> None:
    found = made()
    both = Heads({"texts": found, "a test": found})
    assert [row["of"] for row in both.rows()] == ["texts"] * 6 + ["a test"] * 6
    assert [row["previous"] for row in both.rows()] == [row["previous"] for row in found.rows()] * 2
    told = both.to_json()
    tables = told["tables"]
    assert isinstance(tables, dict)
    assert (told["format"], list(tables)) == ("regard heads", ["texts", "a test"])
    assert tables["texts"]["counts"] == found.counts
    assert [row["previous"] for row in tables["texts"]["heads"]] == [row["previous"] for row in found.rows()]
