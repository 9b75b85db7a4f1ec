"""The senses of a word as panels: a cloud of its occurrences, the senses, their marker words, and examples."""

from typing import TYPE_CHECKING

from regard.corpus.asking.context_words import MIN_Z, REACH
from regard.display.contexts import contexts_of
from regard.display.panels import Called, Cell, Column, InContext, Panel, Point, Scatter, Table
from regard.questions.senses.sentences import sense_name, senses_title
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.senses.answer import Senses


def of_senses(result: "Senses") -> list[Panel]:
    """Show every occurrence as a point, sense by sense, the nearest to the centroid first; then the tables."""
    names = [sense_name(result, sense) for sense in result.senses]
    contexts: list[InContext | None] = list(result.contexts) or [None] * len(result.found)
    points = [
        Point(
            round(float(x), 6), round(float(y), 6), result.found.document[n], names[int(result.clusters.labels[n])],
            context=contexts[n],
        )
        for n, (x, y) in ((n, result.points[n]) for n in result.order().tolist())
    ]  # fmt: skip
    return [cloud(result, points), *tables(result)]


def cloud(result: "Senses", points: list[Point]) -> Scatter:
    """Make the cloud of some points."""
    first, second = (f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(result.axes))
    note = (
        "Each mark is an occurrence, and marks near each other have similar embeddings. The two axes keep "
        f"{sum(result.axes):.0%} of the variance, so occurrences can differ more than their marks."
    )
    return Scatter(
        name="Occurrences", title=f"Occurrences of {quoted(result.word)}, layer {result.layer}", note=note, x=first,
        y=second, points=points, called=Called("document", "sense", "sentence"), drawn="groups", equal=True,
        picture=True,
    )  # fmt: skip


def tables(result: "Senses") -> list[Panel]:
    """Show the senses, their marker words if there are any, and examples."""
    markers = [_markers(result)] if any(sense.words for sense in result.senses) else []
    return [_senses(result), *markers, _examples(result)]


def example_numbers(result: "Senses") -> list[int]:
    """List the numbers that the examples of all senses have among the occurrences, sense by sense."""
    rows = {key: n for n, key in enumerate(zip(result.found.shard, result.found.row.tolist(), strict=True))}
    return [rows[line.shard, line.row] for sense in result.senses for line in sense.examples]


def _senses(result: "Senses") -> Table:
    """Show the size, the mean distance and the marker words of every sense."""
    rows: list[list[Cell]] = [
        [sense_name(result, sense), sense.occurrences, sense.share, sense.distance,
         ", ".join(word.word for word in sense.words) or "none"]
        for sense in result.senses
    ]  # fmt: skip
    columns = [
        Column("sense"), Column("occurrences", 0), Column("fraction", 2, bar=True), Column("distance", 2),
        *([Column("marker words")] if result.asked_words and len(result.senses) > 1 else []),
    ]  # fmt: skip
    note = "distance: mean 1 − cosine between an occurrence and the centroid of its sense."
    if result.told_apart and result.learned is None and result.k is None:
        note += " In our test, 9 of 47 words with a single sense were split too. Read the examples."
    return Table(
        name="Senses", title=f"Senses of {senses_title(result)}, layer {result.layer}", note=note, columns=columns,
        rows=[row[: len(columns)] for row in rows], screen=True, picture=result.told_apart,
    )  # fmt: skip


def _markers(result: "Senses") -> Table:
    rows: list[list[Cell]] = [
        [word.word, sense_name(result, sense), word.near, word.near_others, word.score, word.checked,
         word.changed, word.random_changed, word.moved, word.random_moved]
        for sense in result.senses
        for word in sense.words
    ]  # fmt: skip
    columns = [
        Column("marker word"), Column("sense"), Column("near it", 0), Column("near others", 0),
        Column("z", 2, unbounded=True), Column("blocked in", 0), Column("changes sense", 2), Column("random word", 2),
        Column("moves", 2, detail=True), Column("random word moves", 2, detail=True),
    ]  # fmt: skip
    note = (
        f"Words within {REACH} characters that occur more often near one sense than near the others (z of the "
        f"log-odds ratio above {MIN_Z:.0f}). changes sense: fraction of occurrences that are nearest to another sense "
        "if attention to the word, or to a random word, is blocked."
    )
    return Table(name="Marker words", title="Marker words", note=note, columns=columns, rows=rows, screen=True)


def _examples(result: "Senses") -> Table:
    lines = [(sense_name(result, sense), line.document) for sense in result.senses for line in sense.examples]
    contexts = contexts_of(result.found.take(example_numbers(result)), result.context)
    return Table(
        name="Examples", title="Examples of each sense", note="Examples nearest to the sense's centroid come first.",
        columns=[Column("sense"), Column("sentence"), Column("document")], screen=True,
        rows=[[name, context, document] for (name, document), context in zip(lines, contexts, strict=True)],
    )  # fmt: skip
