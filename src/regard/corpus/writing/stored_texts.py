"""Go through the documents that a store holds, and keep those that were not read again.

A document that is not there any more may have been taken away, or its disk is not mounted: nobody but the user knows.
So it stays where it was, and the shards that hold it stay as they are, until the user says otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.corpus.reading.document import Document, Rejected
from regard.corpus.reading.find_files import Unseen
from regard.corpus.writing.shard import TEXTS, documents_of, texts_of_shard
from regard.errors import RegardError


@dataclass
class Compared:
    """What was read, beside what a store held. read: documents; gone: of the store, not read again; first: of these."""

    read: int = 0
    gone: int = 0
    first: str = ""


class StoredTexts:
    """The documents of a store, in the order in which they were read; shards that are not there have none."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        """Look at the shards of a folder. shards: their names, in order."""
        self._shards = [folder / name for name in shards if (folder / name / TEXTS).is_file()]

    def __iter__(self) -> Iterator[Document]:
        for shard in self._shards:
            yield from documents_of(shard)

    def sources(self) -> dict[str, int]:
        """Number the files that documents are from, in order."""
        found: dict[str, int] = {}
        for shard in self._shards:
            for name in texts_of_shard(shard, ("source",)).column("source").unique().to_pylist():
                found.setdefault(name, len(found))
        return found


def check_seen(found: Iterable[Path | Rejected], stored: StoredTexts) -> None:
    """Check that whatever a store has documents from can be looked at: else nobody knows whether they are gone."""
    unseen = [each for each in found if isinstance(each, Unseen)]
    sources = stored.sources() if unseen else {}
    for each in unseen:
        count = sum(source.startswith(f"{each.source}/") for source in sources)
        if count:
            why = each.reason.removeprefix("cannot be read: ")
            raise RegardError(
                f"folder {each.source!r} cannot be listed ({why}), and the store has texts of {count:,} files in it: "
                "make it readable, or give another --out"
            )


def compare(
    read: Iterable[Document | Rejected], stored: StoredTexts, found: Compared, *, by_id: bool, prune: bool = False
) -> Iterator[Document | Rejected]:
    """Yield what is read and, unless they are pruned, the store's documents that are not read again.

    Each stands where it was before: then its shard is the same.
    """
    for gone, each in _by_id(read, stored) if by_id else _in_place(read, stored):
        if gone and isinstance(each, Document) and each.start == 0:
            found.gone += 1
            found.first = found.first or each.id
        if not gone:
            found.read += isinstance(each, Document) and each.start == 0
        if not (gone and prune):
            yield each


def _in_place(read: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    """Go through both at once: files are in one order whenever they are read, and rows in that of their lines.

    Yields whether a document is gone, and the document.
    """
    numbers = stored.sources()
    ahead = iter(stored)
    held, file = next(ahead, None), -1
    for each in read:
        if isinstance(each, Document):
            here = numbers.get(each.source, -1)
            while held is not None and here != file and numbers[held.source] <= file:  # the rest of the file before
                yield True, held
                held = next(ahead, None)
            file = here
        if isinstance(each, Document) and each.source in numbers:
            place = numbers[each.source], each.line or 0
            while held is not None and (numbers[held.source], held.line or 0) < place:
                yield True, held
                held = next(ahead, None)
            while held is not None and (numbers[held.source], held.line or 0) == place:
                held = next(ahead, None)
        yield False, each
    if held is not None:
        yield True, held
        yield from ((True, each) for each in ahead)


def _by_id(read: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    ids = set()
    for each in read:
        if isinstance(each, Document):
            ids.add(each.id)
        yield False, each
    yield from ((True, part) for part in stored if part.id not in ids)
