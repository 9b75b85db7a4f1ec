"""Ask a corpus store, and put the page of its answer together: occurrences in context, senses, what heads do."""

from collections.abc import Sequence
from functools import partial

from regard.corpus.asking.find import CONTEXT, Concordance
from regard.corpus.asking.senses import Senses
from regard.corpus.store import Store
from regard.errors import RegardError
from regard.server.asked import CorpusAsked
from regard.server.kept import Kept
from regard.server.places import Places, places_of
from regard.server.work import Job, RefusedError
from regard.web.answers import page_of_answer
from regard.web.page import Page
from regard.web.panels import Row, column, in_context, table
from regard.web.senses import example_numbers, senses_page, served_senses_page

LINES = 500  # occurrences that a page lists


def corpus_page(stores: Sequence[Store], asked: CorpusAsked, job: Job) -> Kept:
    """Ask a store.

    Raises:
        RegardError: what the store refuses, such as a word that it does not have. RefusedError: there is no such store.
    """
    if asked.store >= len(stores):
        raise RefusedError(422, f"store: given {asked.store}, this server has {len(stores)}, numbered from 0")
    store = stores[asked.store]
    if asked.about == "heads":
        return Kept(page_of_answer(store.stats()))
    if asked.word is None:
        raise RegardError("word: a store is asked about one word")
    if asked.about == "senses":
        return senses_kept(store, store.senses(asked.word, asked.senses))
    found = store.find(asked.word, like=asked.like, top=LINES)
    lines = Places(store, [line.shard for line in found.lines], [line.row for line in found.lines], CONTEXT)
    return Kept(occurrences_page(found), places={0: lines})


def senses_kept(store: Store, found: Senses) -> Kept:
    """Put together the page of a word's senses; what its points and examples are, is looked up when it is asked for."""
    page = served_senses_page(found)
    shown = found.found.take(found.order()), found.found.take(example_numbers(found))
    panels = 0, len(page.panels) - 1
    places = {panel: places_of(store, each, found.context) for panel, each in zip(panels, shown, strict=True)}
    return Kept(page, places=places, alone=partial(senses_page, found))


def occurrences_page(found: Concordance) -> Page:
    """Put together the page of a concordance: every line with its word marked, and where it is from."""
    page = Page(f"“{found.word}” in the corpus")
    like = "" if found.like is None else f", those first that are nearest to it in “{found.like}”"
    shown = "all" if len(found.lines) == found.total else f"the first {len(found.lines):,}"
    page.findings = [f"“{found.word}” occurs {found.total:,} times; here are {shown}{like}."]
    page.status = list(found.notes)
    alike = found.like is not None
    columns = [
        column("in context"),
        column("document"),
        column("from", 0),
        *([column("similarity", 3)] if alike else []),
    ]
    rows: list[Row] = [
        [in_context(line.left, line.form, line.right), line.document, line.start, *([line.similarity] if alike else [])]
        for line in found.lines
    ]
    page.panels = [table("Occurrences", "from: its first character in the document", columns, rows)]
    page.opening["view"] = "panel 0"
    return page
