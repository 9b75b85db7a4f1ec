"""Query embedding indexes for a browser, and make the pages of occurrences, senses and heads."""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import asdict, replace
from shlex import quote

import numpy as np
from starlette.exceptions import HTTPException

from regard.corpus.asking.occurrences import CONTEXT, MOST, Occurrences, occurrences_at_rows
from regard.corpus.asking.vectors import read_passage
from regard.corpus.questions.find import contexts_of_occurrences
from regard.corpus.questions.senses import panels
from regard.corpus.questions.senses.answer import CHECKED, Senses
from regard.corpus.questions.senses.panels import sense_name
from regard.corpus.store import Store
from regard.corpus.store_tables import digest_model
from regard.display.answer import panel_data
from regard.errors import RegardError
from regard.model_files.folder import DEFAULT_NAME
from regard.models.model import Model
from regard.server.page_cache import CachedPage
from regard.server.requests import CorpusRequest
from regard.web.numbers import Data
from regard.web.page import Page, page_data_with_pictures

LINES = 500  # maximum occurrences on a page
_digests: "weakref.WeakKeyDictionary[Model, str]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class PanelOccurrences:
    """A word's occurrences in the order of a panel. Several threads can read them."""

    def __init__(self, store: Store, shards: Sequence[str], rows: Sequence[int], context: int) -> None:
        """Keep the shard and row of each occurrence. context: characters to show on each side."""
        names = {name: n for n, name in enumerate(dict.fromkeys(shards))}
        self._store, self._names, self._context = store, list(names), context
        self._shards = np.fromiter((names[shard] for shard in shards), np.int32, len(shards))
        self._rows = np.fromiter(rows, np.int64, len(shards))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return self._shards.nbytes + self._rows.nbytes

    def with_context(self, first: int, count: int) -> list[Data]:
        """Return `count` occurrences from number `first`: document, first character, and word in context."""
        self._check_number(first)
        occurrences = self._occurrences_at(range(first, min(len(self), first + count)))
        contexts = contexts_of_occurrences(occurrences, self._context)
        starts = zip(occurrences.document, occurrences.start.tolist(), contexts, strict=True)
        return [
            page_data_with_pictures({"document": document, "start": start, "context": asdict(context)})
            for document, start, context in starts
        ]

    def passage(self, number: int, models: Sequence[Model]) -> Data:
        """Return the text in which an occurrence was embedded, and the number of the model that made the index."""
        self._check_number(number)
        model = model_of_store(self._store, models)
        result = read_passage(models[model], self._occurrences_at([number]))
        return {
            "model": model, "text": result.text, "start": result.start, "end": result.end, "document": result.document,
            "first": result.first, "same": result.same,
        }  # fmt: skip

    def _occurrences_at(self, numbers: Sequence[int]) -> Occurrences:
        shards = [self._names[self._shards[n]] for n in numbers]
        return occurrences_at_rows(self._store, shards, [int(self._rows[n]) for n in numbers])

    def _check_number(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise HTTPException(404, f"place: got {number}, but there are {len(self)}, numbered from 0")


def model_of_store(store: Store, models: Sequence[Model]) -> int:
    """Return the number of the model that made an index. Otherwise raises HTTPException with the right command."""
    maker = store.manifest.model
    for number, model in enumerate(models):
        if _digest_of_served_model(model) == maker.digest:
            return number
    option = f"--model {quote(maker.source)}"  # quoted, as users may paste a stranger's name into a shell
    command = ["regard serve --store", quote(str(store.path)), *([option] if maker.source else [])]
    served = ", ".join(model.name for model in models) or "no model"
    if maker.source:
        flags = option
    else:  # the index was made with the default model or a model object
        flags = "no --model" if maker.name == DEFAULT_NAME else f"--model and the folder of {maker.name}"
    raise HTTPException(
        422,
        f"{store.path.name} was embedded with {maker.name}, this server was started with {served}: to read texts as it "
        f"did start it with {flags}: {' '.join(command)}",
    )


def _digest_of_served_model(model: Model) -> str:
    with _lock:  # hashing all weights is slow: do it once
        if model not in _digests:
            _digests[model] = "" if model.tokenizer is None else digest_model(model)
        return _digests[model]


def corpus_page(stores: Sequence[Store], query: CorpusRequest, models: Sequence[Model] = ()) -> CachedPage:
    """Query an embedding index and return the page of its answer.

    models: the server's models. An index can use only these and the default model.
    """
    if query.store >= len(stores):
        raise HTTPException(422, f"store: got {query.store}, but this server has {len(stores)}, numbered from 0")
    store = stores[query.store]
    if query.about == "heads":
        return CachedPage(store.stats().page())
    if query.word is None:
        raise RegardError("word: a store is asked about one word")
    if query.about == "senses":
        no_model = _use_served_model(store, models)
        senses = store.senses(query.word, query.senses, checked=0 if no_model else CHECKED)
        if no_model and any(sense.words for sense in senses.senses):  # words weren't verified by ablation
            senses = replace(senses, notes=(*senses.notes, no_model.detail))
        return senses_page(store, senses)
    lines = store.find(query.word, top=LINES)
    rows = PanelOccurrences(store, [line.shard for line in lines.lines], [line.row for line in lines.lines], CONTEXT)
    return CachedPage(lines.page(), places={0: rows})


def _use_served_model(store: Store, models: Sequence[Model]) -> HTTPException | None:
    """Set an index's model to the served model that made it. If that is missing but needed, return the error."""
    if not store.has_model:
        try:
            store.use(models[model_of_store(store, models)])
        except HTTPException as error:
            return None if store.of_default else error
    return None


def senses_page(store: Store, result: Senses) -> CachedPage:
    """Make the page of a word's senses for any number of occurrences.

    Points are sent as numbers. Texts of points and examples are read on request.
    """
    order = result.order()
    page = Page(result.title(), result.findings(), result.exactness())
    page.opening["view"] = "panel 0"
    points: Data = {
        "kind": "cloud", "most": MOST, "groups": [sense_name(result, sense) for sense in result.senses],
        "points": page.numbers.add(np.ascontiguousarray(result.points[order], np.float32)),
        "of": page.numbers.add(result.clusters.labels[order].astype(np.uint16)),
    }  # fmt: skip
    scatter = panel_data(panels.senses_scatter(result, []))
    page.panels = [scatter | points, *map(panel_data, panels.senses_tables(result))]
    occurrences = result.found.take(order), result.found.take(panels.example_numbers(result))
    panel_numbers = 0, len(page.panels) - 1
    by_panel = {
        panel: PanelOccurrences(store, group.shard, group.row.tolist(), result.context)
        for panel, group in zip(panel_numbers, occurrences, strict=True)
    }
    return CachedPage(page, places=by_panel, alone=result.page)
