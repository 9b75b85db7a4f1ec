"""Read the documents of a corpus, one after another, in bounded memory; what cannot be read is told, with its place."""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from regard.corpus.reading.document import DEFAULT, MOST
from regard.corpus.reading.document import Columns as Columns
from regard.corpus.reading.document import Document as Document
from regard.corpus.reading.document import Rejected as Rejected
from regard.corpus.reading.find_files import STANDARD_INPUT, find
from regard.corpus.reading.find_files import find_files as find_files
from regard.corpus.reading.parquet_files import read_parquet
from regard.corpus.reading.parts import cut
from regard.corpus.reading.seen_ids import SeenIds
from regard.corpus.reading.streams import FAULTS, kind_of, opened, reason
from regard.corpus.reading.tables import read_csv, read_jsonl
from regard.corpus.reading.text_files import copied_input, read_text
from regard.errors import RegardError

_PACKAGES = {".zst": "zstandard", ".parquet": "pyarrow"}


def read_documents(
    paths: Sequence[str], columns: Columns = DEFAULT, *, most: int = MOST, folder: Path = Path()
) -> Iterator[Document | Rejected]:
    """Read files, folders, patterns and standard input ("-", one text): documents, and what could not be read.

    folder: which paths that are relative are in; what is there is named as from there.

    The same files give the same sequence. A document of more than `most` characters comes in parts, one after another.
    Of documents with the same id the first is read and the others are told.

    Raises:
        RegardError: nothing was found, or a package that reads a kind of file is missing.
    """
    if most < 1:
        raise RegardError(f"most: given {most}, needs to be at least 1")
    found = find(paths, folder)
    for path in found:
        for ending in (kind_of(path) or ()) if isinstance(path, Path) else ():
            package = _PACKAGES.get(ending)
            if package and importlib.util.find_spec(package) is None:
                raise RegardError(f"{str(path)!r}: reading {ending} needs {package}: pip install 'regard[corpus]'")
    return _read_all(found, columns, most, folder)


def _read_all(found: list[Path | Rejected], columns: Columns, most: int, folder: Path) -> Iterator[Document | Rejected]:
    """Read what was found, and tell of ids that are there twice."""
    # Paths, and lines of them, are different without looking: each file is found once.
    ids = None if columns.id is None else SeenIds()
    for number, each in enumerate(found):
        if isinstance(each, Rejected):
            yield each
            continue
        first = None
        for item in _read_file(each, columns, most, folder):
            if isinstance(item, Rejected):
                yield item
                continue
            if ids is not None and item.start == 0:
                first = ids.add(item.id, number, item.line)
                if first is not None:
                    place = _place(found[first[0]], first[1])
                    yield Rejected(item.source, item.line, f"the id {item.id[:80]!r} is there already: {place}")
            if first is not None:  # nor are its other parts read
                continue
            if item.line is None:  # cut as it was read
                yield item
            else:
                yield from (replace(item, start=start, text=text) for start, text in cut([item.text], most))


def _read_file(path: Path, columns: Columns, most: int, folder: Path) -> Iterator[Document | Rejected]:
    """Read a file: a text in parts, the rows of a table whole."""
    source, kind, at = path.as_posix(), (kind_of(path) or ("", ""))[0], folder / path
    try:
        if path == STANDARD_INPUT:
            with copied_input() as again:
                yield from read_text(source, again, most)
        elif kind == ".txt":
            yield from read_text(source, partial(opened, at), most)
        elif kind == ".parquet":
            yield from read_parquet(source, at, columns)
        else:
            with opened(at) as stream:
                yield from (read_jsonl if kind == ".jsonl" else read_csv)(source, stream, columns)
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


def _place(source: "Path | Rejected", line: int | None) -> str:
    """Name a place: a file, and the line where it is a table."""
    name = source.as_posix() if isinstance(source, Path) else source.source
    return f"{name!r}" if line is None else f"{name!r}, line {line:,}"
