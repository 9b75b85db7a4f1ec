"""Tell what the points of a cloud and the lines of a list are: places in a store's texts, asked for one by one.

A page of hundreds of thousands of occurrences carries numbers alone. What one of them says, and the text that it was
read in, is looked up here when somebody points at it.
"""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from shlex import quote

import numpy as np

from regard.corpus.asking.occurrences import Occurrences, at_rows
from regard.corpus.asking.passage import read_passage
from regard.corpus.store import Store
from regard.display.contexts import contexts_of
from regard.model_files.folder import DEFAULT_NAME
from regard.models.digest import digest_model
from regard.models.model import Model
from regard.server.work import RefusedError
from regard.web.page import page_data_with_pictures
from regard.web.score_rules import Data

_digests: "weakref.WeakKeyDictionary[Model, str]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class Places:
    """Occurrences in the order in which a panel shows them. Several threads may ask."""

    def __init__(self, store: Store, shards: Sequence[str], rows: Sequence[int], context: int) -> None:
        """Keep where the occurrences are: shard and row of each. context: characters that are told on either side."""
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
            raise RefusedError(404, f"place: given {number}, there are {len(self)}, numbered from 0")


def reader_of(store: Store, models: Sequence[Model]) -> int:
    """Find which of some models made a store, by what its manifest says."""
    kept = store.manifest.model
    for number, model in enumerate(models):
        if (_digest_of_served_model(model) == kept.digest) if kept.digest else (model.name == kept.name):
            return number
    option = f"--model {quote(kept.source)}"  # it may be a stranger's store, and the line may be pasted into a shell
    command = ["regard serve --store", quote(str(store.path)), *([option] if kept.source else [])]
    here = ", ".join(model.name for model in models) or "no model"
    if kept.source:
        needed = option
    else:  # the default model, or one that was loaded in Python
        needed = "no --model" if kept.name == DEFAULT_NAME else f"--model and the folder of {kept.name}"
    raise RefusedError(
        422,
        f"{store.path.name} was embedded with {kept.name}, this server was started with {here}: to read texts as it "
        f"did start it with {needed}: {' '.join(command)}",
    )


def _digest_of_served_model(model: Model) -> str:
    with _lock:
        if model not in _digests:
            _digests[model] = "" if model.tokenizer is None else digest_model(model)
        return _digests[model]
