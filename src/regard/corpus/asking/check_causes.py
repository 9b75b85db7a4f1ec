"""Check by ablation whether a word of the context gives an occurrence its sense.

The edges from the occurrence's tokens to that word's tokens are cut in every layer and head, and the occurrence is
embedded again: does it now lie nearest to another sense's centroid? Beside it stands the same for a word of the excerpt
that is drawn at random. What reaches the occurrence through other tokens stays: a small share does not say that the
word counts for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.capture.interventions.names import Ablate, ablate, edge
from regard.corpus.asking.clusters import Clusters, words_around_occurrence
from regard.corpus.asking.places import WordSpan, layer_states_as_array, word_at, word_there
from regard.corpus.asking.vectors import unit
from regard.models.model import Model
from regard.trace.trace import Trace


@dataclass(frozen=True)
class CutEffect:
    """What cutting did to occurrences of a sense.

    changed: the share that changes its nearest centroid. moved: the mean of 1 - cosine between the embeddings with and
    without. random_changed, random_moved: the same for a word drawn at random.
    """

    occurrences: int
    changed: float
    random_changed: float
    moved: float
    random_moved: float


def check_causes(
    model: Model,
    places: Sequence[WordSpan],
    clusters: Clusters,
    sense: int,
    words: Sequence[str],
    layer: int,
    *,
    most: int,
    seed: int = 0,
) -> tuple[dict[str, CutEffect], int]:
    """Cut each of some words from occurrences of a sense, in at most so many of them a word, drawn at random.

    Returns what was found for each word, and how many excerpts were left out, because in them alone, without the rest
    of the document, the occurrence is nearer to another sense.
    """
    random = np.random.default_rng(seed)
    around = [words_around_occurrence(place) for place in places]
    wanted = {}
    for word in words:  # of the excerpts that have it, and another word that can be drawn
        having = [n for n, known in enumerate(around) if len(known) > 1 and word in known]
        wanted[word] = set(having if len(having) <= most else random.choice(having, most, replace=False).tolist())
    effects: dict[str, list[tuple[float, ...]]] = {word: [] for word in words}  # of each occurrence, as in `CutEffect`
    astray = 0
    for number in sorted({n for own in wanted.values() for n in own}):
        place = places[number]
        causes = [word for word in words if number in wanted[word]]
        done = _embed_with_causes_cut(model, place, causes, layer, random)
        if int(clusters.assign(done[0][None])[0]) != sense:
            astray += 1
            continue
        changed = clusters.assign(done[1:]) != sense
        moved = 1 - unit(done[1:]) @ unit(done[0])
        for n, word in enumerate(causes):
            effects[word].append((*changed[2 * n : 2 * n + 2], *moved[2 * n : 2 * n + 2]))
    return {word: CutEffect(len(rows), *np.mean(rows, 0).tolist()) for word, rows in effects.items() if rows}, astray


def _embed_with_causes_cut(
    model: Model, place: WordSpan, causes: Sequence[str], layer: int, random: np.random.Generator
) -> Float[np.ndarray, "runs M"]:
    """The occurrence's embedding: as it is, then for each cause with it cut and with another word cut."""
    plain = model.trace(place.text, layers=[layer], logits=False, attention_outputs=False)
    word, by_name = word_at(plain, place), words_around_occurrence(place)
    sets: list[list[Ablate]] = []
    for cause in causes:
        names = sorted(set(by_name) - {cause})
        for name in (cause, names[int(random.integers(len(names)))]):
            spans = [WordSpan(place.text, *span) for span in by_name[name]]
            there = [other for span in spans if (other := word_there(plain, span)) is not None]
            sets.append([ablate(edge(word, other)) for other in there])
    rows = {0: layer_states_as_array(plain, layer)[list(word.tokens)].mean(0)}
    if layer == len(plain.hidden_states) - 2:  # the last: many runs at once, which keep that one alone
        for number, trace in model.ablated(place.text, sets, logits=False):
            assert isinstance(trace, Trace)
            rows[number + 1] = trace.last_hidden_state[list(word.tokens)].mean(0).detach().float().cpu().numpy()
    else:
        for number, each in enumerate(sets):
            trace = model.trace(place.text, layers=[layer], logits=False, attention_outputs=False, interventions=each)
            rows[number + 1] = layer_states_as_array(trace, layer)[list(word.tokens)].mean(0)
    return np.stack([rows[n] for n in range(len(sets) + 1)])
