"""Ask a corpus store, and put the page of its answer together: occurrences in context, senses, what heads do."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.corpus.asking.occurrences import CONTEXT, MOST
from regard.corpus.store import Store
from regard.display.page import panel_data
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.senses import panels
from regard.questions.senses.answer import CHECKED, Senses
from regard.questions.senses.panels import sense_name
from regard.server.asked import CorpusAsked
from regard.server.kept import Kept
from regard.server.places import Places, reader_of
from regard.server.work import RefusedError
from regard.web.page import Page
from regard.web.score_rules import Data

LINES = 500  # occurrences that a page lists


def corpus_page(stores: Sequence[Store], asked: CorpusAsked, models: Sequence[Model] = ()) -> Kept:
    """Ask a store.

    models: what the server was started with; of others a store's own model is the default one alone.
    """
    if asked.store >= len(stores):
        raise RefusedError(422, f"store: given {asked.store}, this server has {len(stores)}, numbered from 0")
    store = stores[asked.store]
    if asked.about == "heads":
        return Kept(store.stats().page())
    if asked.word is None:
        raise RegardError("word: a store is asked about one word")
    if store.manifest.unit == "texts" and asked.about == "occurrences":
        if asked.like is not None:
            raise RegardError(f"like: store {str(store.path)!r} keeps texts, which the text itself is compared with")
        if lacking := _give_model(store, models):
            raise lacking
        return Kept(store.find_texts(asked.word, top=LINES).page())
    if asked.about == "senses":
        lacking = _give_model(store, models)
        found = store.senses(asked.word, asked.senses, checked=0 if lacking else CHECKED)
        if lacking and any(sense.words for sense in found.senses):  # which were not cut
            found = replace(found, notes=(*found.notes, lacking.line))
        return senses_kept(store, found)
    if asked.like is not None and (lacking := _give_model(store, models)):
        raise lacking
    lines = store.find(asked.word, like=asked.like, top=LINES)
    places = Places(store, [line.shard for line in lines.lines], [line.row for line in lines.lines], CONTEXT)
    return Kept(lines.page(), places={0: places})


def _give_model(store: Store, models: Sequence[Model]) -> RefusedError | None:
    """Give a store the one of the server's models that made it; what is said where none did, and it needs one named."""
    if not store.has_model:
        try:
            store.use(models[reader_of(store, models)])
        except RefusedError as lacking:
            return None if store.of_default else lacking
    return None


def senses_kept(store: Store, found: Senses) -> Kept:
    """Put together the page of a word's senses, of any number of occurrences: its file's, but for its points.

    They come as numbers; what points and examples are, is looked up when it is asked for.
    """
    order = found.order()
    page = Page(found.title(), found.findings(), found.exactness())
    page.opening["view"] = "panel 0"
    points: Data = {
        "kind": "cloud", "most": MOST, "groups": [sense_name(found, sense) for sense in found.senses],
        "points": page.numbers.add(np.ascontiguousarray(found.points[order], np.float32)),
        "of": page.numbers.add(found.clusters.labels[order].astype(np.uint16)),
    }  # fmt: skip
    scatter = panel_data(panels.cloud(found, []))
    own = {name: value for name, value in scatter.items() if name not in ("drawn", "equal")}
    page.panels = [own | points, *map(panel_data, panels.tables(found))]
    shown = found.found.take(order), found.found.take(panels.example_numbers(found))
    numbers = 0, len(page.panels) - 1
    places = {
        panel: Places(store, each.shard, each.row.tolist(), found.context)
        for panel, each in zip(numbers, shown, strict=True)
    }
    return Kept(page, places=places, alone=found.page)
