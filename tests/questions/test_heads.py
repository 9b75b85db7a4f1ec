"""The grids of heads over a corpus, held against their numbers."""

from pathlib import Path
from typing import Any

import numpy as np

from regard.corpus.store import SCORES
from regard.display.terminal_parts import plain_lines_of_parts
from regard.explain.weights.head_means import MEANINGS, HeadMeans
from regard.questions.heads import Heads
from regard.web.html_file import script_json


def made_answer() -> HeadMeans:
    scores = {name: np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.4]]) for name in SCORES}
    scores["induction"] = np.full((3, 2), np.nan)
    return HeadMeans(scores, {"queries": 1234, "duplicates": 56, "inductions": 0})


def test_each_grid_shows_its_scores_on_the_common_scale(tmp_path: Path) -> None:
    found = made_answer()
    found.scores["distance"][0, 0] = 30.0
    images = {image.get_gid(): image for axes in Heads({"corpus": found}).plot().axes for image in axes.images}
    assert set(images) == {name for name, own in found.scores.items() if np.isfinite(own).any()}
    for name, image in images.items():
        np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), found.scores[name])
        assert image.get_clim() == (0, 30.0 if name == "distance" else 0.9)
    answer = Heads({"corpus": found})
    assert answer.draw(tmp_path / "a.svg") == []
    assert (tmp_path / "a.svg").stat().st_size > 10_000


def test_rows_and_json_are_those_of_each_table() -> None:
    found = made_answer()
    both = Heads({"texts": found, "a test": found})
    assert [row["of"] for row in both.rows()] == ["texts"] * 6 + ["a test"] * 6
    assert [row["previous"] for row in both.rows()] == [row["previous"] for row in found.rows()] * 2
    told = both.to_json()
    tables = told["tables"]
    assert isinstance(tables, dict)
    assert (told["format"], list(tables)) == ("regard heads", ["texts", "a test"])
    assert tables["texts"]["counts"] == found.counts
    assert [row["previous"] for row in tables["texts"]["heads"]] == [row["previous"] for row in found.rows()]


def mean_scores_of() -> HeadMeans:
    """Three layers of two heads; no token has one to follow by induction, one head no next token."""
    scores = {name: np.arange(6.0).reshape(3, 2) / 10 + n / 100 for n, name in enumerate(SCORES)}
    scores["induction"] = np.full((3, 2), np.nan)
    scores["next"][1, 0] = np.nan
    scores["distance"] = scores["distance"] * 40
    counts = {"queries": 1234, "duplicates": 56, "inductions": 0}
    return HeadMeans(scores, counts, model="a model", notes=("the store is not finished",))


def answer_of(found: HeadMeans) -> Heads:
    """The answer of a corpus with one table."""
    return Heads({"corpus": found})


def test_each_score_is_a_grid_with_a_sentence_and_shares_have_one_scale() -> None:
    found = mean_scores_of()
    page: Any = answer_of(found).page().data()
    script_json(page)
    assert page["title"] == "Scores of 6 attention heads over 1,234 tokens"
    assert page["status"][0].endswith(", read with a model.")
    assert page["status"][1] == "the store is not finished"
    *grids, overview, table = page["panels"]
    assert not any(grid["grey"] for grid in grids)
    assert [grid["name"] for grid in grids] == list(SCORES)
    shares = [name for name in SCORES if name not in ("entropy", "distance")]
    largest = max(float(np.nanmax(found.scores[name])) for name in shares if name != "induction")
    for grid in grids:
        expected = found.scores[grid["name"]]
        values = [[np.nan if value is None else value for value in row] for row in grid["values"]]
        np.testing.assert_array_equal(values, expected)
        assert grid["largest"] == (largest if grid["name"] in shares else None)
        assert grid["note"].startswith(MEANINGS[grid["name"]].says)
        assert (grid["rows"][2], grid["columns"][1]) == ("layer 2", "head 1")
    by_name = {grid["name"]: grid["note"] for grid in grids}
    assert "layer 2, head 1 " in by_name["previous"].lower()
    assert "0.50" in by_name["previous"]
    assert "no induction score" in by_name["induction"]
    rows = {row[0]: row for row in overview["rows"]}
    assert rows["previous"][2:] == [
        "L2H1 0.50, L2H0 0.40, L1H1 0.30", float(found.scores["previous"].mean()), 1234, MEANINGS["previous"].says,
    ]  # fmt: skip
    assert rows["next"][3] == float(np.nanmean(found.scores["next"]))
    assert rows["induction"][2:] == ["no such token", None, 0, MEANINGS["induction"].says]
    assert rows["duplicate"][4] == 56
    assert overview["name"] == "Overview"
    columns = {column["name"]: column["digits"] for column in overview["columns"]}
    assert (columns["mean"], columns["meaning"]) == (2, None)
    assert [row[0] for row in table["rows"]] == ["L0H0", "L0H1", "L1H0", "L1H1", "L2H0", "L2H1"]
    assert table["rows"][2][2] is None  # a head without such a token
    assert table["rows"][5][1] == found.scores["previous"][2, 1]


def test_rows_are_named_by_their_layers() -> None:
    found = HeadMeans({"looked": np.array([[0.5], [0.25]])}, {"queries": 5}, (2, 7))
    grid, overview, table = answer_of(found).page().panels
    assert grid["rows"] == ["layer 2", "layer 7"]
    assert [row[0] for row in table["rows"]] == ["L2H0", "L7H0"]  # type: ignore[attr-defined]
    assert overview["rows"] == []  # what heads look at when tokens are exchanged is beside position and content


def test_heads_that_hardly_look_at_what_was_exchanged_are_grey_and_counted() -> None:
    scores = {"position": np.array([[0.9, 0.5]]), "content": np.array([[0.1, 0.4]]), "looked": np.array([[0.05, 0.5]])}
    position, _, looked, *_ = answer_of(HeadMeans(scores, {"queries": 5})).page().panels
    assert position["title"].startswith("position: ")
    assert position["title"].endswith(", 5 tokens")
    assert (position["unit"], position["grey"], looked["grey"]) == ("likeness", [[0, 0]], [])
    assert "1 grey head attends with less than 0.10" in str(position["note"])


def test_no_grid_is_of_sinks_that_are_not_there() -> None:
    scores = {"sinks": np.zeros((1, 2)), "previous": np.zeros((1, 2))}
    grid, overview, _ = answer_of(HeadMeans(scores, {"queries": 5})).page().panels
    assert grid["name"] == "previous"
    assert [row[2] for row in overview["rows"]] == ["none"] * 2  # type: ignore[attr-defined]


def test_several_tables_are_one_page() -> None:
    page = Heads({"texts": mean_scores_of(), "a test": mean_scores_of()}).page()
    one = [str(panel["name"]) for panel in answer_of(mean_scores_of()).page().panels]
    assert [panel["name"] for panel in page.panels] == [f"{of}: {name}" for of in ("texts", "a test") for name in one]
    assert page.title == "Scores of attention heads: texts, a test"
    assert page.panels[len(SCORES)]["title"] == "Texts: heads with the highest scores, 1,234 tokens"
    alone = Heads({"corpus": mean_scores_of()}).page().data()
    assert alone == answer_of(mean_scores_of()).page().data()


def shown(found: Heads, width: int) -> dict[str, str]:
    """The lines of the table that a terminal shows, by their first words."""
    lines = plain_lines_of_parts(found.shown(width, 100), width)
    return {line.split()[0]: " ".join(line.split()) for line in reversed(lines) if line.startswith("  ")}


def test_every_score_has_a_line_with_its_largest_heads() -> None:
    lines = shown(answer_of(mean_scores_of()), 80)
    assert set(SCORES) <= set(lines)
    assert lines["score"] == "score attends to highest heads mean"
    assert lines["previous"] == "previous the previous token L2H1 0.50, L2H0 0.40, L1H1 0.30 0.25"
    assert " L2H1 " in lines["duplicate"]
    assert lines["induction"].endswith(" no such token –")
    assert lines["L0H2"].startswith("L0H2 is layer 0, head 2")
    assert not any("left out" in line or "How much" in line for line in lines.values())


def test_position_and_content_name_heads_by_how_much_more_they_follow_the_one() -> None:
    """A head that looks everywhere evenly is alike in both, one that hardly looks at what was exchanged in nothing."""
    tables = {"position": [[1.0, 0.9, 0.9]], "content": [[1.0, 0.2, 0.1]], "looked": [[1.0, 0.5, 0.05]]}
    found = HeadMeans({name: np.array(table) for name, table in tables.items()}, {"queries": 5}, (4,))
    lines = shown(Heads({"tokens exchanged": found}), 80)
    assert lines["position"].split()[-3:] == ["L4H1", "0.90", "0.93"]  # 4.0 follows both, 4.2 looks too little
    assert " none " in lines["content"]  # 4.1 follows position
    assert "looked" not in lines
