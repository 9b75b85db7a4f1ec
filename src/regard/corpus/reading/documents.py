"""Find the files of a corpus and read their documents one after another, in bounded memory.

Files are read in the order of the paths, and sorted by name within a folder. Links in a folder or matched by a pattern
may lead anywhere, so they are followed only on request. A link that you pass as a path is followed. Each file and
folder is read once, under its first name, even if several paths and links lead to it, so cyclic links do no harm.
Hidden files in folders are skipped. Everything else that isn't read is reported with its path and the reason.
"""

import glob
import os
import re
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import regex

from regard.corpus.reading.document import DEFAULT, MOST, Columns, Document, Rejected
from regard.corpus.reading.streams import (
    BLOCK,
    FAULTS,
    NEEDED,
    Stream,
    kind_of,
    opened,
    read_csv,
    read_jsonl,
    read_parquet,
    reason,
    text_blocks,
)
from regard.errors import RegardError
from regard.files import check_regular

STANDARD_INPUT = Path("-")
LINK = "it is a link: pass --follow-links (follow_links=True) to read it"
_MOST_NAMED = 5  # maximum number of file endings that a message lists
_IN_MEMORY = 8 << 20  # bytes of standard input in memory; a longer input goes to a temporary file
_END = r"(?>\r\n|[\n\r\x85\u2028\u2029])"
# Patterns after which a text can be cut, from best to worst. Each search takes time linear in the text's length.
_PAUSES = (
    re.compile(rf"{_END}(?:[^\S\n\r\x85\u2028\u2029]*{_END})+"),  # a blank line
    re.compile(_END),
    re.compile(r"[.!?…][\"'”’»)\]]*+\s|[。！？][”’」』）]*+"),
    re.compile(r"\s"),
)
_CHARACTER = regex.compile(r"\X")  # a grapheme cluster
_LONGEST = 40  # code points before a position that are searched for the start of a grapheme cluster


class Unseen(Rejected):
    """A file or folder that can't be read, so its content is unknown."""


def find_files(paths: Sequence[str], *, follow_links: bool = False) -> list[Path]:
    """Return the readable files that are passed, matched by a pattern or in a folder at any depth, and "-"."""
    return [path for path in find_files_and_rejected(paths, follow_links=follow_links) if isinstance(path, Path)]


def find_files_and_rejected(
    paths: Sequence[str], folder: Path = Path(), *, follow_links: bool = False
) -> list[Path | Rejected]:
    """Return the files of `find_files` and the rejected inputs with their reasons, as found.

    folder: the base of relative paths. Files are opened as `folder / path`, but named without `folder`.
    follow_links: whether to read links in folders and links that patterns match.
    """
    if isinstance(paths, str) or not paths:
        raise RegardError(f"paths: got {paths!r}, expected a list of files, folders, patterns or '-'")
    result: list[Path | Rejected] = []
    listed: dict[tuple[int, int], Path] = {}
    for path in paths:
        if path == "-":
            result += [STANDARD_INPUT] * (STANDARD_INPUT not in result)
            continue
        is_folder_or_pattern, expanded, leading = _expand_input_path(path, folder, follow_links)
        entries, any_readable = _list_files(expanded, listed, folder, None if follow_links else leading)
        if is_folder_or_pattern and not any_readable:
            for entry in entries:
                if isinstance(entry, Unseen) and os.path.isdir(folder / entry.source):
                    raise RegardError(f"{entry.source!r} {entry.reason}")
            kinds = ", ".join(_counts_by_ending(entries)) or "nothing that is not hidden"
            raise RegardError(f"{path!r} holds nothing to read: found {kinds}; {NEEDED}")
        result += entries
    if not any(isinstance(entry, Path) for entry in result):
        raise RegardError(f"nothing to read in {', '.join(map(repr, paths[:_MOST_NAMED]))}: {NEEDED}")
    return result


def _expand_input_path(pattern: str, folder: Path, follow_links: bool) -> tuple[bool, list[Path], int]:
    """Return whether a path is a folder or pattern, the paths it matches, and the number of parts before wildcards."""
    full_path, parts = os.path.join(folder, pattern) if folder != Path() else pattern, Path(pattern).parts
    if os.path.isdir(full_path):
        return True, [Path(pattern)], len(parts)
    if not os.path.lexists(full_path) and glob.has_magic(pattern):
        leading = next(n for n, part in enumerate(parts) if glob.has_magic(part))
        if follow_links or "**" not in parts:
            matches = [Path(match) for match in glob.glob(pattern, root_dir=folder, recursive=True)]
        else:  # glob's ** follows links, even in cycles. Here, links to folders are matches and reported
            literal, inside = Path(*parts[:leading]), folder / Path(*parts[:leading])
            links = [Path(top, n) for top, names, _ in os.walk(inside) for n in names if os.path.islink(f"{top}/{n}")]
            paths = {path.relative_to(inside) for path in [*inside.glob("/".join(parts[leading:])), *links]}
            hidden = any(part.startswith(".") for part in parts[leading:])
            matches = [literal / path for path in paths if hidden or not any(n.startswith(".") for n in path.parts)]
        if not matches:
            raise RegardError(f"{pattern!r} matches no file")
        return True, sorted(matches, key=Path.as_posix), leading
    check_regular(full_path)
    return False, [Path(pattern)], len(parts)


def _list_files(
    paths: Iterable[Path], listed: dict[tuple[int, int], Path], folder: Path, leading: int | None
) -> tuple[list[Path | Rejected], bool]:
    """List the files in paths and in folders below them that aren't listed yet. Also return whether any is readable.

    listed: the path of each file and folder listed so far, by device and inode; extended here. leading: number of
    leading parts of a path that may be links, None to follow every link.
    """
    entries: list[Path | Rejected] = []
    any_readable = False
    stack = list(reversed(list(paths)))
    while stack:
        path = stack.pop()
        name = path.as_posix()
        try:
            name.encode()
            on_disk = folder / path
            if leading is not None and (link := _first_link(path, leading, folder)) is not None:
                linked = Rejected(link.as_posix(), None, LINK)
                entries += [linked] * (linked not in entries[-1:])  # once, even if a pattern matches many files in it
                continue
            status = on_disk.stat()
            is_folder = stat.S_ISDIR(status.st_mode)
            inode = status.st_dev, status.st_ino
            first = listed.get(inode)
            if first is not None and os.path.abspath(folder / first) == os.path.abspath(on_disk):
                any_readable = any_readable or is_folder or kind_of(path) is not None  # an earlier path listed it
            elif first is not None:
                any_readable = True
                kind = "folder" if is_folder else "file"
                entries.append(Rejected(name, None, f"it is the same {kind} as {first.as_posix()!r}, which is read"))
            elif is_folder:
                listed[inode] = path
                inside = sorted(child for child in os.listdir(on_disk) if not child.startswith("."))
                stack += [path / child for child in reversed(inside)]
            elif not stat.S_ISREG(status.st_mode):
                entries.append(Rejected(name, None, "it isn't a regular file"))
            elif kind_of(path) is None:
                entries.append(Rejected(name, None, f"it is of no known kind; {NEEDED}"))
            else:
                any_readable, listed[inode] = True, path
                entries.append(path)
        except UnicodeEncodeError:
            escaped = os.fsencode(name).decode("utf-8", "backslashreplace")
            entries.append(Rejected(escaped, None, "its name is no UTF-8"))
        except OSError as error:  # a broken or circular link, or a folder without permission
            entries.append(Unseen(name, None, f"cannot be read: {error.strerror or error}"))
    return entries, any_readable


def _first_link(path: Path, leading: int, folder: Path) -> Path | None:
    """Return the first link after the first `leading` parts of a path, None if there is none."""
    parts = (Path(*path.parts[:n]) for n in range(leading + 1, len(path.parts) + 1))
    return next((part for part in parts if os.path.islink(folder / part)), None)


def _counts_by_ending(entries: Iterable[Path | Rejected]) -> list[str]:
    """Return the number of rejected files per ending, as phrases for a message."""
    linked = "behind links, which --follow-links reads"
    rejected = [entry for entry in entries if isinstance(entry, Rejected)]
    endings = Counter(linked if entry.reason == LINK else Path(entry.source).suffix for entry in rejected)
    ranked = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    phrases = [f"{count} {ending or 'without an ending'}" for ending, count in ranked[:_MOST_NAMED]]
    rest = sum(count for _, count in ranked[_MOST_NAMED:])
    return [*phrases, f"{rest} others"] if rest else phrases


def read_documents(
    paths: Sequence[str], columns: Columns = DEFAULT, *, size: int = MOST, folder: Path = Path(),
    follow_links: bool = False,
) -> Iterator[Document | Rejected]:  # fmt: skip
    """Yield the documents of files, folders, patterns and standard input ("-"), and the rejected inputs.

    columns: the text and id columns of tables. folder: the base of relative paths, not part of the documents' names.
    follow_links: whether to read links in folders.

    The same files give the same sequence. A document of more than `size` characters is yielded in consecutive parts.
    If several documents have the same id, the first is read and the others are rejected.
    """
    return _read_all(find_files_and_rejected(paths, folder, follow_links=follow_links), columns, size, folder)


def _read_all(files: list[Path | Rejected], columns: Columns, size: int, folder: Path) -> Iterator[Document | Rejected]:
    """Yield the documents of all found files, and reject those whose id occurred before."""
    # Only ids from a column can repeat. Paths and lines can't, because each file is found once.
    ids: dict[str, tuple[Path, int | None]] = {}  # file and line of each id's first document
    for entry in files:
        if isinstance(entry, Rejected):
            yield entry
            continue
        first = None
        for item in _read_file(entry, columns, size, folder):
            if isinstance(item, Rejected):
                yield item
                continue
            if columns.id is not None and item.start == 0:
                first = ids.get(item.id)
                ids.setdefault(item.id, (entry, item.line))
                if first is not None:
                    first_place = f"{first[0].as_posix()!r}" + ("" if first[1] is None else f", line {first[1]:,}")
                    yield Rejected(item.source, item.line, f"the id {item.id[:80]!r} is there already: {first_place}")
            if first is not None:  # skip its other parts as well
                continue
            if item.line is None:  # already cut on reading
                yield item
            else:
                yield from (
                    replace(item, start=start, text=text) for start, text in cut_document_into_parts([item.text], size)
                )


def _read_file(path: Path, columns: Columns, size: int, folder: Path) -> Iterator[Document | Rejected]:
    """Yield the documents of a file: a text in parts, but table rows uncut."""
    source, kind, full_path = path.as_posix(), (kind_of(path) or ("", ""))[0], folder / path
    try:
        if path == STANDARD_INPUT:
            with copied_standard_input() as open_stream:
                yield from read_text_document(source, open_stream, size)
        elif kind == ".txt":
            yield from read_text_document(source, partial(opened, full_path), size)
        elif kind == ".parquet":
            yield from read_parquet(source, full_path, columns)
        else:
            with opened(full_path) as stream:
                yield from (read_jsonl if kind == ".jsonl" else read_csv)(source, stream, columns)
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


def read_text_document(
    source: str, open_stream: Callable[[], AbstractContextManager[Stream]], size: int
) -> Iterator[Document | Rejected]:
    """Yield a text file in parts of at most `size` characters, after a first pass that checks the whole file.

    The text is unchanged, including line ends. A byte order mark at the start isn't part of the text.
    """
    try:
        with open_stream() as stream:
            length, blank = 0, True
            for block in text_blocks(stream):
                length += len(block)
                blank = blank and block.isspace()
        if blank:
            yield Rejected(source, None, "blank" if length else "empty")
            return
        with open_stream() as stream:
            for start, text in cut_document_into_parts(text_blocks(stream), size):
                yield Document(source, text, start, source, None, {})
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


@contextmanager
def copied_standard_input() -> Iterator[Callable[[], AbstractContextManager[Stream]]]:
    """Copy standard input to memory or a temporary file. Yield a function that opens the copy."""
    if sys.stdin is None:
        raise RegardError("there is no standard input")
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        while block := sys.stdin.buffer.read(BLOCK):
            copy.write(block)

        @contextmanager
        def rewound() -> Iterator[Stream]:
            copy.seek(0)
            yield copy

        yield rewound


def cut_document_into_parts(blocks: Iterable[str], size: int) -> Iterator[tuple[int, str]]:
    """Cut a text that comes in blocks into parts of at most `size` characters. Yield each part with its start.

    The cuts depend only on the text, not on the blocks. At most a single part and block are in memory. The cut is in
    the second half of the longest possible part: at the last blank line, or else at the last end of a line, sentence or
    word, or else between two grapheme clusters.
    """
    buffer, position, start = "", 0, 0
    for block in blocks:
        buffer, position = buffer[position:] + block, 0
        while len(buffer) - position > size:
            end = _end_of_document_part(buffer, position, position + size)
            yield start, buffer[position:end]
            start, position = start + end - position, end
    if position < len(buffer):
        yield start, buffer[position:]


def _end_of_document_part(text: str, first: int, last: int) -> int:
    """Return the end of the part that begins at `first`. It is in the second half of [first, last]."""
    middle = first + (last - first) // 2
    for pause in _PAUSES:
        for end in reversed([match.end() for match in pause.finditer(text, middle, last)]):
            if _between_graphemes(text, first, end):
                return end
    return next((end for end in range(last, middle, -1) if _between_graphemes(text, first, end)), last)


def _between_graphemes(text: str, first: int, position: int) -> bool:
    """Return whether a position is between two grapheme clusters, so that a cut there splits no accent or emoji."""
    start = max(first, position - _LONGEST)
    return any(match.end() == position for match in _CHARACTER.finditer(text, start, position + 1))
