"""Ask a corpus store, and put the page of its answer together: occurrences in context, senses, what heads do."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from regard.corpus.asking.find import CONTEXT, Concordance
from regard.corpus.asking.find_sentences import concordance_sentences
from regard.corpus.asking.senses import CHECKED, Senses
from regard.corpus.store import Store
from regard.errors import RegardError
from regard.models.model import Model
from regard.server.asked import CorpusAsked
from regard.server.kept import Kept
from regard.server.places import Places, places_of, reader_of
from regard.server.work import Job, RefusedError
from regard.text.quoting import quoted
from regard.web.answers import page_of_answer
from regard.web.page import Page
from regard.web.panels import Row, column, in_context, table
from regard.web.senses import example_numbers, senses_page, served_senses_page

LINES = 500  # occurrences that a page lists


def corpus_page(stores: Sequence[Store], asked: CorpusAsked, job: Job, models: Sequence[Model] = ()) -> Kept:
    """Ask a store. models: what the server was started with; of others a store's own model is the default one alone.

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
        lacking = give_model(store, models)
        found = store.senses(asked.word, asked.senses, checked=0 if lacking else CHECKED)
        if lacking and any(sense.words for sense in found.senses):  # which were not cut
            found = replace(found, notes=(*found.notes, lacking.line))
        return senses_kept(store, found)
    if asked.like is not None and (lacking := give_model(store, models)):
        raise lacking
    lines = store.find(asked.word, like=asked.like, top=LINES)
    places = Places(store, [line.shard for line in lines.lines], [line.row for line in lines.lines], CONTEXT)
    return Kept(occurrences_page(lines), places={0: places})


def give_model(store: Store, models: Sequence[Model]) -> RefusedError | None:
    """Give a store the one of the server's models that made it; what is said where none did, and it needs one named."""
    if not store.has_model:
        try:
            store.use(models[reader_of(store, models)])
        except RefusedError as lacking:
            return None if store.of_default else lacking
    return None


def senses_kept(store: Store, found: Senses) -> Kept:
    """Put together the page of a word's senses; what its points and examples are, is looked up when it is asked for."""
    page = served_senses_page(found)
    shown = found.found.take(found.order()), found.found.take(example_numbers(found))
    panels = 0, len(page.panels) - 1
    places = {panel: places_of(store, each, found.context) for panel, each in zip(panels, shown, strict=True)}
    return Kept(page, places=places, alone=partial(senses_page, found))


def occurrences_page(found: Concordance) -> Page:
    """Put together the page of a concordance: every line with its word marked, and where it is from."""
    page = Page(f"{quoted(found.word)} in the corpus")
    page.findings = concordance_sentences(found)
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
