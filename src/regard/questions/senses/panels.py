"""The senses of a word as panels: a cloud of its occurrences, the senses, the words that tell them, good examples."""

from typing import TYPE_CHECKING

from regard.corpus.asking.context_words import REACH
from regard.display.contexts import contexts_of
from regard.display.panels import Called, Cell, Column, InContext, Panel, Point, Scatter, Table
from regard.questions.senses.sentences import CUT, ablation_sentence, sense_name, senses_title
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.senses.answer import Senses


def of_senses(found: "Senses") -> list[Panel]:
    """Show every occurrence as a point, sense by sense, the nearest to the centroid first; then the tables."""
    names = [sense_name(found, sense) for sense in found.senses]
    contexts: list[InContext | None] = list(found.contexts) or [None] * len(found.found)
    points = [
        Point(
            round(float(x), 6), round(float(y), 6), found.found.document[n], names[int(found.clusters.labels[n])],
            context=contexts[n],
        )
        for n, (x, y) in ((n, found.points[n]) for n in found.order().tolist())
    ]  # fmt: skip
    return [cloud(found, points), *tables(found)]


def cloud(found: "Senses", points: list[Point]) -> Scatter:
    """Make the cloud of some points."""
    first, second = (f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(found.axes))
    note = (
        f"Each mark is one place where {quoted(found.word)} stands; its shape and colour say which sense it was given. "
        "Marks near each other: nearly the same embeddings, as far as these two axes show. The axes are those along "
        f"which the occurrences differ most; together they keep {sum(found.axes):.0%} of their variance, so that marks "
        "which lie together here may lie apart in what is left out."
    )
    return Scatter(
        name="Occurrences", title=f"Where {quoted(found.word)} stands", note=note, x=first, y=second, points=points,
        called=Called("document", "sense", "sentence"), drawn="groups", equal=True, picture=True,
    )  # fmt: skip


def tables(found: "Senses") -> list[Panel]:
    """Show the senses, the words that tell them where there are any, and good examples."""
    return [_senses(found), *([_words(found)] if any(sense.words for sense in found.senses) else []), _examples(found)]


def example_numbers(found: "Senses") -> list[int]:
    """List the numbers that the good examples of all senses have among the occurrences, sense by sense."""
    places = {key: n for n, key in enumerate(zip(found.found.shard, found.found.row.tolist(), strict=True))}
    return [places[line.shard, line.row] for sense in found.senses for line in sense.examples]


def _senses(found: "Senses") -> Table:
    """Every sense with its size, and in a sentence what cutting its telling words did."""
    rows: list[list[Cell]] = [
        [sense_name(found, sense), ablation_sentence(sense), sense.occurrences, sense.share, sense.distance]
        for sense in found.senses
    ]
    columns = [
        Column("sense"), Column("without the words near it", detail=True), Column("occurrences", 0),
        Column("share", 2, bar=True), Column("distance", 2),
    ]  # fmt: skip
    note = f"distance: mean of 1 − cosine between the occurrences and their centroid. {CUT}"
    return Table(
        name="Senses", title=f"The senses of {senses_title(found)}", note=note, columns=columns, rows=rows,
        screen=True, picture=found.told_apart,
    )  # fmt: skip


def _words(found: "Senses") -> Table:
    rows: list[list[Cell]] = [
        [word.word, sense_name(found, sense), word.near, word.near_others, word.score, word.checked,
         word.changed, word.random_changed, word.moved, word.random_moved]
        for sense in found.senses
        for word in sense.words
    ]  # fmt: skip
    columns = [
        Column("word near it"), Column("sense"), Column("occurrences", 0), Column("of other senses", 0), Column("z", 1),
        Column("cut in", 0), Column("changes sense", 2), Column("random word", 2), Column("moves", 2, detail=True),
        Column("random word moves", 2, detail=True),
    ]  # fmt: skip
    note = (
        f"Words within {REACH} characters of the occurrence that stand near one sense more often than near the others; "
        "z: standard deviations of the log-odds. cut in: how many occurrences it was cut from; changes sense: the "
        "share of them that then lies nearest to another sense; moves: mean of 1 − cosine between the occurrence with "
        "and without it; random word: the same for another word of the text."
    )
    title = "The words that tell the senses"
    return Table(name="Words near it", title=title, note=note, columns=columns, rows=rows, screen=True)


def _examples(found: "Senses") -> Table:
    lines = [(sense_name(found, sense), line.document) for sense in found.senses for line in sense.examples]
    contexts = contexts_of(found.found.take(example_numbers(found)), found.context)
    columns = [Column("sense"), Column("sentence"), Column("document")]
    note = "those nearest to the centroid of their sense, the nearest first"
    return Table(
        name="Examples", title="Good examples of each sense", note=note, columns=columns, screen=True,
        rows=[[name, context, document] for (name, document), context in zip(lines, contexts, strict=True)],
    )  # fmt: skip
