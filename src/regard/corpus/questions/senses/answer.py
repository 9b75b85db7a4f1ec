"""Tell the senses of a word in a store: clusters of its occurrences, good examples, and what in the context tells them.

Senses are found as `regard.corpus.asking.clusters` says. The words that mark a sense are each checked by ablation
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
from regard.corpus.questions.find import LONGEST, contexts_of, length_of
from regard.corpus.questions.senses import panels as shown
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import InContext
from regard.errors import RegardError
from regard.explain.frames import Row

if TYPE_CHECKING:
    from regard.corpus.asking.clusters import CutEffect

EXAMPLES = 5
WORDS = 5  # of the context, for each sense
CHECKED = 30  # occurrences in which a word of the context is cut


@dataclass(frozen=True)
class ContextWord:
    """A word that sets a sense apart, and what cutting it did.

    score: z of the log-odds ratio. near: in how many of the sense's excerpts it stands; near_others: in how
    many of the other senses'. checked: occurrences in which it was cut; the others as in `check_causes.CutEffect`, in
    its order, None if none was.
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
    """One sense. name: its number from 1. share: of all occurrences. distance: mean from the centroid.

    Where senses could not be told apart, one that is called so has all occurrences.
    """

    name: str
    occurrences: int
    share: float
    distance: float
    examples: tuple[Line, ...]
    words: tuple[ContextWord, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Senses(Answer):
    """The senses of a word, the largest first.

    found, clusters: all occurrences, and their senses. points: where each is on the first two principal axes; axes:
    the variance that each keeps, a share. context: characters on either side that were requested. k: how many senses
    were requested, None if the silhouette was to say it. contexts: of each occurrence, for a page.
    asked_words: how many marker words were requested, for each sense.
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
        """Whether there are senses: asked for by their number, or told apart by their measures."""
        return self.k is not None or len(self.senses) > 1

    def findings(self) -> list[str]:
        """Report how large the senses are, which words mark them and what ablating these words did."""
        return shown.senses_sentences(self)

    def order(self) -> Int[np.ndarray, " R"]:
        """Number the occurrences sense by sense, the nearest to the centroid first."""
        return np.lexsort((self.clusters.distances, self.clusters.labels))

    def rows(self) -> list[Row]:
        """List every occurrence with its sense, sense by sense, the nearest to the centroid first."""
        order = self.order()
        lines = flat_rows(self.found.take(order).lines(self.context))
        labels, distances = self.clusters.labels[order], self.clusters.distances[order]
        return [
            {"sense": self.senses[int(label)].name, "distance": float(distance), **row}
            for label, distance, row in zip(labels, distances, lines, strict=True)
        ]

    def data(self) -> dict[str, object]:
        """Give the senses with examples and the words that tell them, and of each occurrence its sense and place."""
        places = zip(
            self.points.tolist(), self.clusters.labels.tolist(), self.found.shard, self.found.row.tolist(), strict=True
        )
        return {
            "word": self.word, "told_apart": self.told_apart, "layer": self.layer, "occurrences": len(self.found),
            "senses": [asdict(each) for each in self.senses],
            "silhouettes": {str(k): value for k, value in self.clusters.silhouettes.items()},
            "separations": {str(k): value for k, value in self.clusters.separations.items()},
            "points": [
                {"x": x, "y": y, "sense": self.senses[label].name, "shard": shard, "row": row}
                for (x, y), label, shard, row in places
            ],
            "axes": list(self.axes), "notes": list(self.notes),
        }  # fmt: skip

    def for_page(self) -> "Senses":
        """Put every point into its sentence: a page shows it."""
        if len(self.found) > MOST:
            raise RegardError(
                f"page: {self.word!r} has {len(self.found):,} occurrences, a page shows at most {MOST:,}: "
                "a CSV table and a picture have all of them, or embed fewer texts"
            )
        contexts = contexts_of(self.found, self.context)
        if (size := length_of(contexts)) > LONGEST:
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
    """Find the senses of a word."""
    for name, given in (("examples", examples), ("words", words), ("checked", checked)):
        if given < 0:
            raise RegardError(f"{name}: got {given}, expected 0 or more")
    check_seed(seed)
    tables.layer_index(layer)
    found = look_up(tables, word, by)
    used = tables.layer if layer is None else layer
    vectors = found.vectors(used)
    clusters = find_clusters(vectors, k, seed=seed)
    told = k is not None or clusters.k > 1
    names = [str(n + 1) for n in range(clusters.k)] if told else [NOT_SEPARATED]
    texts = found.texts()
    parts = [texts[key] for key in zip(found.shard, found.part.tolist(), strict=True)]
    spans = zip(parts, found.start.tolist(), found.end.tolist(), strict=True)
    places = [excerpt_around_occurrence(part, start, end) for part, start, end in spans]
    notes = [*tables.notes, *clusters.notes]
    telling = _context_words(tables, places, clusters, used, words, checked, seed, notes)
    made = []
    for sense, size in enumerate(clusters.sizes()):
        own = clusters.labels == sense
        lines = found.take(clusters.examples(sense, examples)).lines(context)
        distance = float(clusters.distances[own].mean()) if size else 0.0
        made.append(Sense(names[sense], size, size / len(found), distance, tuple(lines), telling[sense]))
    points, axes = principal_axes(vectors, 2)
    return Senses(
        word, used, tuple(made), tuple(notes), found, clusters, points, axes, context, k,
        asked_words=words,
    )  # fmt: skip


def _context_words(
    tables: StoreTables,
    places: Sequence[WordSpan],
    clusters: Clusters,
    layer: int,
    words: int,
    checked: int,
    seed: int,
    notes: list[str],
) -> list[tuple[ContextWord, ...]]:
    """The context words that mark each sense, checked by ablation. Notes list what was left out."""
    if clusters.k == 1 or not words:
        return [()] * clusters.k
    contexts, labels = [set(words_around_occurrence(place)) for place in places], clusters.labels.tolist()
    found = []
    for sense in range(clusters.k):
        telling = marker_words(contexts, labels, sense, words)
        own = [n for n, label in enumerate(labels) if label == sense]
        results: dict[str, CutEffect] = {}
        if checked and telling:
            names = [word for word, _ in telling]
            mine = [places[n] for n in own]
            results, astray = check_causes(tables.model, mine, clusters, sense, names, layer, most=checked, seed=seed)
            if astray:
                notes.append(
                    f"Sense {sense + 1}: {astray} of the ablated excerpts are left out, because the excerpt alone is "
                    "nearer to another sense."
                )
        ranked = []
        for word, score in telling:
            near_own = sum(word in contexts[n] for n in own)
            everywhere = sum(word in context for context in contexts)
            effect = astuple(results[word]) if word in results else ()
            ranked.append(ContextWord(word, score, near_own, everywhere - near_own, *effect))
        found.append(tuple(ranked))
    return found
