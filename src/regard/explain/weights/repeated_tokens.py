"""Score heads on random tokens that are repeated: nothing but the repetition can be followed there.

The test of Olsson et al. 2022, "In-context Learning and Induction Heads": of a text w x y … w x y …, an induction head
at the second w looks behind the first, at x. `head_scores` says what previous, duplicate and induction are.
"""

from typing import TYPE_CHECKING

from regard.explain.weights.head_means import HeadMeans, mean_scores
from regard.explain.weights.head_scores import head_scores
from regard.explain.weights.random_tokens import random_ids

if TYPE_CHECKING:
    from regard.models.model import Model

NAMES = ("previous", "duplicate", "induction")  # the other scores are of natural texts
LENGTH, TEXTS = 40, 4


def repeated_tokens(model: "Model", *, length: int = LENGTH, texts: int = TEXTS, seed: int = 0) -> HeadMeans:
    """Score every head of a model on texts of random tokens, each `length` different ones twice over.

    The scores are means over the texts, which seed draws.
    """
    found = []
    for n in range(texts):
        trace = model.trace(ids=random_ids(model, length, 2, seed=seed + n), logits=False, attention_outputs=False)
        found.append(head_scores(trace))
    means = mean_scores(found)
    return HeadMeans({name: means.scores[name] for name in NAMES}, means.counts, means.layers)
