from typing import Any

from regard.explain.weights.head_scores import NAMES, head_scores
from regard.explain.weights.score_meanings import MEANINGS
from regard.web.scores_of_heads import head_scores_data


def test_scores_by_name_row_and_head(minilm: Any) -> None:
    scores = head_scores(minilm.trace("A man is fishing"))
    data: Any = head_scores_data(scores, 2, [4, 5, 6, 7, 8, 9])
    assert (data["text"], data["calls"]) == (2, [4, 5, 6, 7, 8, 9])
    assert data["names"] == list(NAMES)
    assert data["meanings"][3] == f"{MEANINGS['special'].says[:-1]} (here the mean of {scores.queries} tokens)."
    assert data["meanings"][NAMES.index("induction")].endswith("(here the mean of 0 tokens).")
    assert abs(data["values"][3][2][5] - float(scores.special[2, 5])) < 1e-6
    assert data["values"][NAMES.index("duplicate")][0][0] is None  # no word is repeated
