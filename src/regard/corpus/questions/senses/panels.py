"""Write the senses of a word as sentences, tables and a scatter plot."""

from typing import TYPE_CHECKING

from regard.corpus.asking.clusters import MIN_Z, NOT_SEPARATED, REACH, SEPARATION, SILHOUETTE, SMALLEST, Clusters
from regard.corpus.questions.find import contexts_of_occurrences
from regard.display.panels import Called, Cell, Column, InContext, Panel, Point, Scatter, Table
from regard.display.sentences import Template, sentences
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.corpus.questions.senses.answer import Sense, Senses

MAX_NAMED = 3  # maximum number of senses that a sentence lists
MEASURES = (
    f"mean silhouette {{silhouette}} ({SILHOUETTE} needed) and mean separation {{separation}} ({SEPARATION} needed)"
)
UNSEPARATED: list[Template] = [
    (f"The {{k}} clusters that you asked for are not clearly separated: {MEASURES}.", lambda n: n["asked"]),
    (f"The senses of {{word}} are {NOT_SEPARATED}: the best split, into {{k}}, has {MEASURES}.", None),
    ("{word} occurs only {times}, too few to find senses.", lambda n: not n["separated"] and n["total"] < 4),
    (f"Every split of {{word}} has a cluster of fewer than 2 occurrences, or of less than {SMALLEST:.0%} of {{total}}.",
     lambda n: not n["separated"]),
]  # fmt: skip
TABLE: list[list[Template]] = [
    UNSEPARATED,
    [
        ("All {total} occurrences of {word} are in {name}, because you asked for 1 sense.", lambda n: n["asked"] == 1),
        ("{word} has {count} {groups} in {total} occurrences: {senses}.", lambda n: 1 < n["count"] <= MAX_NAMED),
        ("{word} has {count} {groups} in {total} occurrences. The largest is {largest}.", lambda n: n["count"] > 1),
    ],
    [
        ("Blocking attention to {marker} moves {changed:%} of {tested} occurrences of {sense} to another sense (random "
         "word: {random:%}).", lambda n: n["changed"] > n["random"]),
        ("Blocking attention to any of the {markers} tested marker words changes the sense no more often than "
         "blocking a random word.", lambda n: n["tested"] and n["markers"] > 1),
        ("Blocking attention to {marker} changes the sense no more often than blocking a random word.", None),
        ("The effect of the marker words on the sense was not tested.", lambda n: n["has_markers"]),
    ],
    [("No context word distinguishes {unmarked}.", None)],
]  # fmt: skip


def senses_panels(result: "Senses") -> list[Panel]:
    """Return a scatter plot of all occurrences, then the tables of senses, marker words and examples."""
    names = [sense_name(result, sense) for sense in result.senses]
    contexts: list[InContext | None] = list(result.contexts) or [None] * len(result.found)
    points = [
        Point(
            round(float(x), 6), round(float(y), 6), result.found.document[n], names[int(result.clusters.labels[n])],
            context=contexts[n],
        )
        for n, (x, y) in ((n, result.points[n]) for n in result.order().tolist())
    ]  # fmt: skip
    return [senses_scatter(result, points), *senses_tables(result)]


def senses_scatter(result: "Senses", points: list[Point]) -> Scatter:
    """Return the scatter plot of occurrences on their first two principal axes."""
    first, second = (f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(result.axes))
    note = (
        "Each mark is an occurrence, and marks near each other have similar embeddings. The two axes keep "
        f"{sum(result.axes):.0%} of the variance, so occurrences can differ more than their marks."
    )
    return Scatter(
        name="Occurrences", title=f"Occurrences of {quoted(result.word)}, layer {result.layer}", note=note, x=first,
        y=second, points=points, called=Called("document", "sense", "sentence"),
        picture=True,
    )  # fmt: skip


def senses_tables(result: "Senses") -> list[Panel]:
    """Return the tables of senses, marker words (if there are any) and examples."""
    markers = [_table_of_markers(result)] if any(sense.words for sense in result.senses) else []
    return [_table_of_senses(result), *markers, _table_of_examples(result)]


def example_numbers(result: "Senses") -> list[int]:
    """Return the indices of each sense's examples among all occurrences, sense by sense."""
    rows = {key: n for n, key in enumerate(zip(result.found.shard, result.found.row.tolist(), strict=True))}
    return [rows[line.shard, line.row] for sense in result.senses for line in sense.examples]


def _table_of_senses(result: "Senses") -> Table:
    """Return the table of each sense's size, mean distance and marker words."""
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
    if result.told_apart and result.k is None:
        note += " In our test, 9 of 47 words with a single sense were split too. Read the examples."
    return Table(
        name="Senses", title=f"Senses of {senses_title(result)}, layer {result.layer}", note=note, columns=columns,
        rows=[row[: len(columns)] for row in rows], screen=True, picture=result.told_apart,
    )  # fmt: skip


def _table_of_markers(result: "Senses") -> Table:
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


def _table_of_examples(result: "Senses") -> Table:
    lines = [(sense_name(result, sense), line.document) for sense in result.senses for line in sense.examples]
    contexts = contexts_of_occurrences(result.found.take(example_numbers(result)), result.context)
    return Table(
        name="Examples", title="Examples of each sense", note="Examples nearest to the sense's centroid come first.",
        columns=[Column("sense"), Column("sentence"), Column("document")], screen=True,
        rows=[[name, context, document] for (name, document), context in zip(lines, contexts, strict=True)],
    )  # fmt: skip


def senses_sentences(result: "Senses") -> list[str]:
    """Report the senses, the effect of ablating their marker words, and which senses have no marker word."""
    senses, total = [sense for sense in result.senses if sense.occurrences], len(result.found)
    names = [sense_name(result, sense) for sense in senses]
    parts = [
        f"{name} ({sense.share:.0%}" + (f", near {quoted(sense.words[0].word)})" if sense.words else ")")
        for name, sense in zip(names, senses, strict=True)
    ]
    tested = [(w, name) for sense, name in zip(senses, names, strict=True) for w in sense.words if w.checked]
    word, sense = max(
        tested, key=lambda pair: (pair[0].changed or 0) - (pair[0].random_changed or 0), default=[None] * 2
    )
    unmarked = [name for sense, name in zip(senses, names, strict=True) if not sense.words]
    phrase = unmarked if len(unmarked) <= MAX_NAMED else f"{len(unmarked)} of the {len(senses)} senses"
    phrase = f"the {len(senses)} senses" if len(unmarked) == len(senses) else phrase
    unseparated = measures(result.k, result.clusters)
    numbers = {
        "word": quoted(result.word), "total": total, "times": "once" if total == 1 else f"{total} times",
        "separated": result.told_apart, "asked": result.k,
        "count": len(senses) if result.told_apart else 0, "groups": "clusters" if unseparated else "senses",
        "name": names[0], "senses": parts, "largest": parts[0],
        "unmarked": phrase if result.asked_words and len(senses) > 1 and unmarked else None,
        "marker": word and quoted(word.word), "sense": sense, "tested": word and word.checked, "markers": len(tested),
        "changed": word and word.changed, "random": word and word.random_changed,
        "has_markers": any(sense.words for sense in senses),
    }  # fmt: skip
    return sentences(TABLE, numbers | unseparated)


def measures(k: int | None, clusters: Clusters) -> dict[str, str | int]:
    """Return the silhouette and separation of clusters that aren't separated, or nothing if they are."""
    silhouettes = clusters.silhouettes
    best = max(silhouettes, key=lambda n: silhouettes[n], default=None) if k is None and clusters.k == 1 else k
    if best not in silhouettes or (k is not None and clusters.separates(k)):
        return {}
    separation = rounded(clusters.separations[best], SEPARATION)
    return {"k": best, "silhouette": rounded(silhouettes[best], SILHOUETTE), "separation": separation}


def rounded(value: float, limit: float, form: str = "f") -> str:
    """Round a number to two digits, or to more if needed to keep it on the same side of a limit."""
    side = value > limit, value < limit
    texts = (f"{value:z.{digits}{form}}" for digits in range(2, 18))
    return next(text for text in texts if (float(text) > limit, float(text) < limit) == side).replace("-", "−")


def sense_name(result: "Senses", sense: "Sense") -> str:
    """Return a sense's name, such as "sense 1", or `NOT_SEPARATED`."""
    return f"sense {sense.name}" if result.told_apart else sense.name


def senses_title(result: "Senses") -> str:
    """Return the title: the word, and its numbers of occurrences and senses."""
    rows, count = len(result.found), len(result.senses)
    senses = f"{count} sense{'s' * (count != 1)}" if result.told_apart else f"senses {NOT_SEPARATED}"
    return f"{quoted(result.word)}: {rows:,} occurrence{'s' * (rows != 1)}, {senses}"


def exactness_of_senses(result: "Senses") -> list[str]:
    """Report the model, the layer and the clusters' measures, then the notes on the index."""
    line = f"Embeddings from {result.found.tables.manifest.model.name}, layer {result.layer}"
    if (k := result.clusters.k) in result.clusters.silhouettes:
        scores = (f"{means[k]:z.2f}" for means in (result.clusters.silhouettes, result.clusters.separations))
        line += ": mean silhouette {}, mean separation {}".format(*scores)
    return [f"{line}.", *result.notes]
