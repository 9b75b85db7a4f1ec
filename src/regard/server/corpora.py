"""Ask a corpus store, and put the page of its answer together: occurrences in context, senses, what heads do."""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import asdict, replace
from shlex import quote

import numpy as np
from starlette.exceptions import HTTPException

from regard.corpus.asking.occurrences import CONTEXT, MOST, Occurrences, at_rows
from regard.corpus.asking.vectors import read_passage
from regard.corpus.questions.find import contexts_of
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

LINES = 500  # occurrences that a page lists
_digests: "weakref.WeakKeyDictionary[Model, str]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class PanelOccurrences:
    """Occurrences in the order in which a panel shows them. Several threads may ask."""

    def __init__(self, store: Store, shards: Sequence[str], rows: Sequence[int], context: int) -> None:
        """Keep the positions of occurrences: shard and row. context: characters to show on each side."""
        names = {name: n for n, name in enumerate(dict.fromkeys(shards))}
        self._store, self._names, self._context = store, list(names), context
        self._shards = np.fromiter((names[each] for each in shards), np.int32, len(shards))
        self._rows = np.fromiter(rows, np.int64, len(shards))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return self._shards.nbytes + self._rows.nbytes

    def told(self, first: int, count: int) -> list[Data]:
        """List `count` occurrences from `first` on: document, first character, the word in its context."""
        self._check(first)
        found = self._found(range(first, min(len(self), first + count)))
        contexts = contexts_of(found, self._context)
        starts = zip(found.document, found.start.tolist(), contexts, strict=True)
        return [
            page_data_with_pictures({"document": document, "start": start, "context": asdict(context)})
            for document, start, context in starts
        ]

    def passage(self, number: int, models: Sequence[Model]) -> Data:
        """Find the text that a place was read in, and which of some models reads it."""
        self._check(number)
        model = reader_of(self._store, models)
        found = read_passage(models[model], self._found([number]))
        return {
            "model": model, "text": found.text, "start": found.start, "end": found.end, "document": found.document,
            "first": found.first, "same": found.same,
        }  # fmt: skip

    def _found(self, numbers: Sequence[int]) -> Occurrences:
        shards = [self._names[self._shards[n]] for n in numbers]
        return at_rows(self._store, shards, [int(self._rows[n]) for n in numbers])

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise HTTPException(404, f"place: got {number}, but there are {len(self)}, numbered from 0")


def reader_of(store: Store, models: Sequence[Model]) -> int:
    """Find which of some models made a store, by what its manifest says."""
    kept = store.manifest.model
    for number, model in enumerate(models):
        if _digest_of_served_model(model) == kept.digest:
            return number
    option = f"--model {quote(kept.source)}"  # it may be a stranger's store, and the line may be pasted into a shell
    command = ["regard serve --store", quote(str(store.path)), *([option] if kept.source else [])]
    here = ", ".join(model.name for model in models) or "no model"
    if kept.source:
        needed = option
    else:  # the default model, or one that was loaded in Python
        needed = "no --model" if kept.name == DEFAULT_NAME else f"--model and the folder of {kept.name}"
    raise HTTPException(
        422,
        f"{store.path.name} was embedded with {kept.name}, this server was started with {here}: to read texts as it "
        f"did start it with {needed}: {' '.join(command)}",
    )


def _digest_of_served_model(model: Model) -> str:
    with _lock:  # hashing all weights takes as long as a short answer
        if model not in _digests:
            _digests[model] = "" if model.tokenizer is None else digest_model(model)
        return _digests[model]


def corpus_page(stores: Sequence[Store], asked: CorpusRequest, models: Sequence[Model] = ()) -> CachedPage:
    """Ask a store.

    models: what the server was started with; of others a store's own model is the default one alone.
    """
    if asked.store >= len(stores):
        raise HTTPException(422, f"store: got {asked.store}, but this server has {len(stores)}, numbered from 0")
    store = stores[asked.store]
    if asked.about == "heads":
        return CachedPage(store.stats().page())
    if asked.word is None:
        raise RegardError("word: a store is asked about one word")
    if asked.about == "senses":
        lacking = _give_model(store, models)
        found = store.senses(asked.word, asked.senses, checked=0 if lacking else CHECKED)
        if lacking and any(sense.words for sense in found.senses):  # which were not cut
            found = replace(found, notes=(*found.notes, lacking.detail))
        return senses_kept(store, found)
    lines = store.find(asked.word, top=LINES)
    places = PanelOccurrences(store, [line.shard for line in lines.lines], [line.row for line in lines.lines], CONTEXT)
    return CachedPage(lines.page(), places={0: places})


def _give_model(store: Store, models: Sequence[Model]) -> HTTPException | None:
    """Give a store the one of the server's models that made it; what is said if none did, and it needs one named."""
    if not store.has_model:
        try:
            store.use(models[reader_of(store, models)])
        except HTTPException as lacking:
            return None if store.of_default else lacking
    return None


def senses_kept(store: Store, found: Senses) -> CachedPage:
    """Put together the page of a word's senses, of any number of occurrences: its file's, except for its points.

    They come as numbers; what points and examples are, is looked up when it is requested.
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
        panel: PanelOccurrences(store, each.shard, each.row.tolist(), found.context)
        for panel, each in zip(numbers, shown, strict=True)
    }
    return CachedPage(page, places=places, alone=found.page)
