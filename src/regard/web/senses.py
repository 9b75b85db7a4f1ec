"""The page of a word's senses: a cloud of its occurrences, the words that tell the senses, good examples of each."""

from collections.abc import Sequence

import numpy as np

from regard.checks import megabytes
from regard.corpus.asking.context_words import REACH, excerpt
from regard.corpus.asking.occurrences import BLANKS, Occurrences, Part
from regard.corpus.asking.sense_sentences import (
    CUT,
    ablation_sentence,
    how_found,
    sense_name,
    sense_sentences,
    senses_title,
)
from regard.corpus.asking.senses import Senses
from regard.errors import RegardError
from regard.text.quoting import quoted
from regard.web.page import Page
from regard.web.panels import Row, cloud, column, in_context, point, scatter, table
from regard.web.score_rules import Data
from regard.web.sizes import LIMIT

MOST = 20_000  # occurrences, each an element: in Chromium, on one busy core, as many took 9 s to open


def senses_page(found: Senses) -> Page:
    """Put together the page of a word's senses.

    Raises:
        RegardError: there are more occurrences than a page draws, or a text is missing in the store.
    """
    if len(found.found) > MOST:
        raise RegardError(
            f"page: {found.word!r} has {len(found.found):,} occurrences, {MOST:,} are the most that a page shows: "
            "--csv and --figure have all of them, or embed fewer texts"
        )
    page = _opened(found)
    contexts = contexts_of(found)
    _check_size(found, contexts)
    examples = [contexts[n] for n in example_numbers(found)]
    page.panels = [_cloud(found, contexts), *_tables(found, examples)]
    return page


def served_senses_page(found: Senses) -> Page:
    """Put together the same page for a server, of any number of occurrences: what each of them is, it says itself.

    Its first panel has them in the order of `found.order()`, its last one those of `example_numbers`.

    Raises:
        RegardError: a text is missing in the store.
    """
    page, order = _opened(found), found.order()
    title, note, axes, name, called = _cloud_words(found)
    points = page.numbers.add(np.ascontiguousarray(found.points[order], np.float32))
    of = page.numbers.add(found.clusters.labels[order].astype(np.uint16))
    names = [sense_name(found, sense) for sense in found.senses]
    examples = in_contexts(found.found.take(example_numbers(found)), found.context)
    shown = cloud(title, note, axes, points, names, of, most=MOST, called=called, name=name)
    page.panels = [shown, *_tables(found, examples)]
    return page


def example_numbers(found: Senses) -> list[int]:
    """List the numbers that the good examples of all senses have among the occurrences, sense by sense."""
    places = {key: n for n, key in enumerate(zip(found.found.shard, found.found.row.tolist(), strict=True))}
    return [places[line.shard, line.row] for sense in found.senses for line in sense.examples]


def _opened(found: Senses) -> Page:
    """The page with its sentences, without a panel."""
    page = Page(senses_title(found), findings=[*sense_sentences(found), *found.notes])
    page.status = [
        f"Embedded with {found.found.tables.manifest.model.name}; {how_found(found)}.",
        "Each occurrence is one vector, the mean of the word's tokens, scaled to length 1; senses are its nearest "
        "centroids by cosine.",
    ]
    page.opening["view"] = "panel 0"
    return page


def _tables(found: Senses, examples: Sequence[Data]) -> list[Data]:
    words = [_words(found)] if any(sense.words for sense in found.senses) else []
    return [_senses(found), *words, _examples(found, examples)]


def _check_size(found: Senses, contexts: list[Data]) -> None:
    """Raise RegardError where the texts, which a file has twice, once for those without JavaScript, are too long."""
    size = 2 * sum(len(str(each["left"])) + len(str(each["right"])) for each in contexts)
    if size > LIMIT:
        raise RegardError(
            f"page: its sentences would have about {megabytes(size)}, {megabytes(LIMIT)} are the most: give fewer "
            f"characters on either side than {found.context:,} (context=, --context)"
        )


def contexts_of(found: Senses) -> list[Data]:
    """Put every occurrence into its context, cut where words end; … stands where a text goes on."""
    return in_contexts(found.found, found.context)


def in_contexts(found: Occurrences, reach: int) -> list[Data]:
    """Put occurrences into contexts of so many characters on either side.

    Raises:
        RegardError: a text is missing in the store.
    """
    texts = found.texts()
    spans = zip(found.start.tolist(), found.end.tolist(), strict=True)
    contexts = []
    for key, (start, end) in zip(zip(found.shard, found.part.tolist(), strict=True), spans, strict=True):
        if key not in texts:
            raise RegardError(f"shard {key[0]}: a row names part {key[1]}, which texts.parquet has not")
        contexts.append(_context(texts[key], start, end, reach))
    return contexts


def _context(part: Part, start: int, end: int, reach: int) -> Data:
    place = excerpt(part, start, end, reach)
    left, right = BLANKS.sub(" ", place.text[: place.start]), BLANKS.sub(" ", place.text[place.end :])
    before, behind = start - part.start > place.start, len(part.text) - (end - part.start) > len(place.text) - place.end
    return in_context("… " * before + left.lstrip(), place.form, right.rstrip() + " …" * behind)


def _cloud(found: Senses, contexts: list[Data]) -> Data:
    """Every occurrence as a point, sense by sense, the nearest to the centroid first."""
    names = [sense_name(found, sense) for sense in found.senses]
    points = []
    for n in found.order().tolist():
        x, y = (round(float(each), 6) for each in found.points[n])
        sense = names[int(found.clusters.labels[n])]
        points.append(point(x, y, found.found.document[n], sense, context=contexts[n]))
    title, note, axes, name, called = _cloud_words(found)
    return scatter(title, note, *axes, points, called=called, drawn="groups", equal=True, name=name)


def _cloud_words(found: Senses) -> tuple[str, str, tuple[str, str], str, tuple[str, str, str]]:
    """The cloud's title, its note, its axes, the name of its tab, and what its labels, groups and contexts are."""
    first, second = (f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(found.axes))
    note = (
        f"Each mark is one place where {quoted(found.word)} stands; its shape and colour say which sense it was given. "
        "Marks near each other: nearly the same embeddings, as far as these two axes show. The axes are those along "
        f"which the occurrences differ most; together they keep {sum(found.axes):.0%} of their variance, so that marks "
        "which lie together here may lie apart in what is left out."
    )
    return f"Where {quoted(found.word)} stands", note, (first, second), "Occurrences", ("document", "sense", "sentence")


def _senses(found: Senses) -> Data:
    """Every sense with its size, and in a sentence what cutting its telling words did."""
    rows: list[Row] = [
        [sense_name(found, sense), ablation_sentence(sense), sense.occurrences, sense.share, sense.distance]
        for sense in found.senses
    ]
    columns = [
        column("sense"), column("without the words near it"), column("occurrences", 0), column("share", 2, bar=True),
        column("distance", 3),
    ]  # fmt: skip
    note = f"distance: mean of 1 − cosine between the occurrences and their centroid. {CUT}"
    return table("The senses", note, columns, rows, name="Senses")


def _words(found: Senses) -> Data:
    rows: list[Row] = [
        [word.word, sense_name(found, sense), word.near, word.near_others, word.score, word.checked,
         word.changed, word.random_changed, word.moved, word.random_moved]
        for sense in found.senses
        for word in sense.words
    ]  # fmt: skip
    columns = [
        column("word near it"), column("sense"), column("occurrences", 0), column("of other senses", 0),
        column("z", 1), column("cut in", 0), column("changes sense", 2), column("random word", 2),
        column("moves", 4), column("random word moves", 4),
    ]  # fmt: skip
    note = (
        f"Words within {REACH} characters of the occurrence that stand near one sense more often than near the others; "
        "z: standard deviations of the log-odds. cut in: how many occurrences it was cut from; changes sense: the "
        "share of them that then lies nearest to another sense; moves: mean of 1 − cosine between the occurrence with "
        "and without it; random word: the same for another word of the text."
    )
    return table("The words that tell the senses", note, columns, rows, name="Words near it")


def _examples(found: Senses, contexts: Sequence[Data]) -> Data:
    lines = [(sense_name(found, sense), line.document) for sense in found.senses for line in sense.examples]
    rows: list[Row] = [[name, context, document] for (name, document), context in zip(lines, contexts, strict=True)]
    columns = [column("sense"), column("sentence"), column("document")]
    return table(
        "Good examples of each sense", "those nearest to the centroid of their sense, the nearest first", columns, rows,
        name="Examples",
    )  # fmt: skip
