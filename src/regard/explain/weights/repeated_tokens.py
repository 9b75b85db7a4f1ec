"""Score heads on random tokens that are repeated: nothing but the repetition can be followed there.

The test of Olsson et al. 2022, "In-context Learning and Induction Heads": of a text w x y … w x y …, an induction head
at the second w looks behind the first, at x. `head_scores` says what previous, duplicate and induction are.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from regard.checks import check_seed
from regard.errors import RegardError
from regard.explain.weights.head_means import HeadMeans, mean_scores
from regard.explain.weights.head_scores import head_scores

if TYPE_CHECKING:
    from regard.models.model import Model

NAMES = ("previous", "duplicate", "induction")  # the other scores are of natural texts
LENGTH, TEXTS = 40, 4


def random_ids(model: "Model", length: int, repeats: int = 1, *, seed: int = 0) -> list[int]:
    """Draw different tokens at random, `length` of them, `repeats` times the same, between the model's special tokens.

    Tokens are those spelled with letters alone; of a model without a tokenizer any id that it has.

    model: whose vocabulary they are drawn from. seed: of the draw.
    """
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: random tokens are for models with a single stack")
    check_seed(seed)
    if length < 2 or repeats < 1:
        raise RegardError(f"random tokens: given {length} tokens, {repeats} times, needs 2 or more, once or more")
    before, after = special_around(model)
    whole = length * repeats + len(before) + len(after)
    if model.limit is not None and whole > model.limit:
        raise RegardError(f"random tokens: given {whole} with special ones, {model.name} takes {model.limit} at most")
    pool = _plain_ids(model)
    if len(pool) < length:
        raise RegardError(f"random tokens: given {length}, {model.name} has {len(pool)} that can be drawn")
    drawn = np.random.default_rng(seed).choice(pool, length, replace=False).tolist()
    return [*before, *drawn * repeats, *after]


def special_around(model: "Model") -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens that the tokenizer puts before and behind a text."""
    if model._tokenizer is None:
        return [], []
    ids = model._tokenizer("a")["input_ids"]
    special = [number in model._tokenizer.all_special_ids for number in ids]
    first = next((n for n, each in enumerate(special) if not each), len(ids))
    last = next((n for n, each in enumerate(special[::-1]) if not each), 0)
    return ids[:first], ids[len(ids) - last :]


def _plain_ids(model: "Model") -> Int[np.ndarray, " V"]:
    """The ids that can be drawn."""
    count = model._session.original.get_input_embeddings().num_embeddings
    if model._tokenizer is None:
        return np.arange(count)
    marks = "\u2581\u0120#"  # what begins a word, or goes on with one, in the vocabularies that are in use
    spelled = enumerate(model._tokenizer.convert_ids_to_tokens(range(min(count, len(model._tokenizer)))))
    special = set(model._tokenizer.all_special_ids)
    plain = [n for n, each in spelled if n not in special and each is not None and each.strip(marks).isalpha()]
    return np.array(plain, dtype=np.int64)


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
