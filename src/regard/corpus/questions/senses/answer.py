"""Find the senses of a word in an embedding index: clusters, examples and marker words.

`regard.corpus.asking.clusters` describes the method. Each word that marks a sense is checked by ablation
(`check_causes`).
"""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float, Int

from regard.checks import check_seed, megabytes
from regard.corpus.asking.clusters import (
    NOT_SEPARATED,
    Clusters,
    check_causes,
    excerpt_around_occurrence,
    find_clusters,
    marker_words,
    words_around_occurrence,
)
from regard.corpus.asking.occurrences import CONTEXT, MOST, Line, Occurrences, flat_rows, look_up
from regard.corpus.asking.vectors import WordSpan, principal_axes
from regard.corpus.questions.find import LONGEST, contexts_of_occurrences, length_of_contexts
from regard.corpus.questions.senses import panels as shown
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import InContext
from regard.errors import RegardError
from regard.shown import Row

if TYPE_CHECKING:
    from regard.corpus.asking.clusters import CutEffect

EXAMPLES = 5
WORDS = 5  # marker words for each sense
CHECKED = 30  # maximum number of occurrences in which a marker word is ablated


@dataclass(frozen=True)
class ContextWord:
    """A marker word of a sense, and the effect of ablating attention to it.

    score: z of the log-odds ratio. near, near_others: number of excerpts with the word, of the sense and of the other
    senses. checked: number of occurrences in which it was ablated. The other fields are those of `CutEffect`, None if
    the word wasn't ablated.
    """

    word: str
    score: float
    near: int
    near_others: int
    checked: int = 0
    changed: float | None = None
    random_changed: float | None = None
    moved: float | None = None
    random_moved: float | None = None


@dataclass(frozen=True)
class Sense:
    """A sense of a word. name: its number, from 1. share: fraction of all occurrences. distance: mean to the centroid.

    If senses aren't separated, a single sense named `NOT_SEPARATED` has all occurrences.
    """

    name: str
    occurrences: int
    share: float
    distance: float
    examples: tuple[Line, ...]
    words: tuple[ContextWord, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Answer):
    """The result of `senses`: the senses of a word, the largest first.

    found, clusters: all occurrences and their clusters. points: coordinates on the first two principal axes. axes: the
    fraction of variance that each axis explains. context: requested number of characters on either side. k: the
    requested number of senses, None to choose it by silhouette. contexts: each occurrence's context, for a page.
    asked_words: the requested number of marker words per sense.
    """

    format: ClassVar[str] = "regard senses"
    title = shown.senses_title
    exactness = shown.exactness_of_senses
    panels = shown.senses_panels

    word: str
    layer: int
    senses: tuple[Sense, ...]
    notes: tuple[str, ...]
    found: Occurrences = field(repr=False)
    clusters: Clusters = field(repr=False)
    points: Float[np.ndarray, "R 2"] = field(repr=False)
    axes: tuple[float, ...] = (0.0, 0.0)
    context: int = CONTEXT
    k: int | None = None
    contexts: Sequence[InContext] = field(default=(), repr=False)
    asked_words: int = WORDS

    @property
    def told_apart(self) -> bool:
        """Return whether occurrences are assigned to senses: k was requested, or the clusters are separated."""
        return self.k is not None or len(self.senses) > 1

    def findings(self) -> list[str]:
        """Report the senses' sizes, their marker words, and the effect of ablating these words."""
        return shown.senses_sentences(self)

    def order(self) -> Int[np.ndarray, " R"]:
        """Return the occurrences' indices, sorted by sense and then by distance from the centroid."""
        return np.lexsort((self.clusters.distances, self.clusters.labels))

    def rows(self) -> list[Row]:
        """Return every occurrence with its sense, sorted by sense and then by distance from the centroid."""
        order = self.order()
        lines = flat_rows(self.found.take(order).lines(self.context))
        labels, distances = self.clusters.labels[order], self.clusters.distances[order]
        return [
            {"sense": self.senses[int(label)].name, "distance": float(distance), **row}
            for label, distance, row in zip(labels, distances, lines, strict=True)
        ]

    def data(self) -> dict[str, object]:
        """Return the senses with examples and marker words, and each occurrence's sense and point, for JSON."""
        points = zip(
            self.points.tolist(), self.clusters.labels.tolist(), self.found.shard, self.found.row.tolist(), strict=True
        )
        return {
            "word": self.word, "told_apart": self.told_apart, "layer": self.layer, "occurrences": len(self.found),
            "senses": [asdict(sense) for sense in self.senses],
            "silhouettes": {str(k): value for k, value in self.clusters.silhouettes.items()},
            "separations": {str(k): value for k, value in self.clusters.separations.items()},
            "points": [
                {"x": x, "y": y, "sense": self.senses[label].name, "shard": shard, "row": row}
                for (x, y), label, shard, row in points
            ],
            "axes": list(self.axes), "notes": list(self.notes),
        }  # fmt: skip

    def for_page(self) -> "Senses":
        """Add every occurrence's context for a page. Raises RegardError if there are too many."""
        if len(self.found) > MOST:
            raise RegardError(
                f"page: {self.word!r} has {len(self.found):,} occurrences, a page shows at most {MOST:,}: "
                "a CSV table and a picture have all of them, or embed fewer texts"
            )
        contexts = contexts_of_occurrences(self.found, self.context)
        if (size := length_of_contexts(contexts)) > LONGEST:
            raise RegardError(
                f"page: its sentences would have about {megabytes(size)}, the limit is {megabytes(LONGEST)}: pass "
                f"fewer characters on either side than {self.context:,} (context)"
            )
        return replace(self, contexts=contexts)


def find_senses(
    tables: StoreTables,
    word: str,
    k: int | None = None,
    *,
    by: str = "word",
    layer: int | None = None,
    examples: int = EXAMPLES,
    words: int = WORDS,
    checked: int = CHECKED,
    context: int = CONTEXT,
    seed: int = 0,
) -> Senses:
    """Cluster a word's occurrences into senses, find the senses' marker words, and ablate attention to them."""
    for name, value in (("examples", examples), ("words", words), ("checked", checked)):
        if value < 0:
            raise RegardError(f"{name}: got {value}, expected 0 or more")
    check_seed(seed)
    tables.layer_index(layer)
    occurrences = look_up(tables, word, by)
    chosen_layer = tables.layer if layer is None else layer
    vectors = occurrences.vectors(chosen_layer)
    clusters = find_clusters(vectors, k, seed=seed)
    separated = k is not None or clusters.k > 1
    names = [str(n + 1) for n in range(clusters.k)] if separated else [NOT_SEPARATED]
    texts = occurrences.texts()
    parts = [texts[key] for key in zip(occurrences.shard, occurrences.part.tolist(), strict=True)]
    spans = zip(parts, occurrences.start.tolist(), occurrences.end.tolist(), strict=True)
    excerpts = [excerpt_around_occurrence(part, start, end) for part, start, end in spans]
    notes = [*tables.notes, *clusters.notes]
    markers = _marker_words_by_sense(tables, excerpts, clusters, chosen_layer, words, checked, seed, notes)
    senses = []
    for sense, size in enumerate(clusters.sizes()):
        members = clusters.labels == sense
        lines = occurrences.take(clusters.examples(sense, examples)).lines(context)
        distance = float(clusters.distances[members].mean()) if size else 0.0
        senses.append(Sense(names[sense], size, size / len(occurrences), distance, tuple(lines), markers[sense]))
    points, axes = principal_axes(vectors, 2)
    return Senses(
        word, chosen_layer, tuple(senses), tuple(notes), occurrences, clusters, points, axes, context, k,
        asked_words=words,
    )  # fmt: skip


def _marker_words_by_sense(
    tables: StoreTables,
    excerpts: Sequence[WordSpan],
    clusters: Clusters,
    layer: int,
    words: int,
    checked: int,
    seed: int,
    notes: list[str],
) -> list[tuple[ContextWord, ...]]:
    """Return each sense's marker words, checked by ablation. Append notes on left-out excerpts."""
    if clusters.k == 1 or not words:
        return [()] * clusters.k
    contexts, labels = [set(words_around_occurrence(excerpt)) for excerpt in excerpts], clusters.labels.tolist()
    by_sense = []
    for sense in range(clusters.k):
        markers = marker_words(contexts, labels, sense, words)
        members = [n for n, label in enumerate(labels) if label == sense]
        results: dict[str, CutEffect] = {}
        if checked and markers:
            names = [word for word, _ in markers]
            uses = [excerpts[n] for n in members]
            results, skipped = check_causes(tables.model, uses, clusters, sense, names, layer, limit=checked, seed=seed)
            if skipped:
                notes.append(
                    f"Sense {sense + 1}: {skipped} of the ablated excerpts are left out, because the excerpt alone is "
                    "nearer to another sense."
                )
        ranked = []
        for word, score in markers:
            near_own = sum(word in contexts[n] for n in members)
            total = sum(word in context for context in contexts)
            effect = astuple(results[word]) if word in results else ()
            ranked.append(ContextWord(word, score, near_own, total - near_own, *effect))
        by_sense.append(tuple(ranked))
    return by_sense
