"""Find the files of a corpus: those that are named, all in a folder, all that a pattern matches.

The same paths give the same files in the same order: as named, and sorted by name within a folder. Links below a folder
or a pattern may lead anywhere, so they are followed only on request; a link that is named itself is followed. Each file
and folder is read once, under its first name, however many paths and links lead to it; so links cannot lead round in
circles. Hidden files in folders are passed over; of all else that is not read, it is said why.

Paths that are relative can be read as in a folder other than the one that the process is in: files are named the same.
"""

import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.corpus.reading.document import Rejected
from regard.corpus.reading.streams import NEEDED, kind_of
from regard.errors import RegardError
from regard.files import check_regular

STANDARD_INPUT = Path("-")
LINK = "it is a link: pass --follow-links (follow_links=True) to read it"
_MOST_NAMED = 5  # endings that a message names


class Unseen(Rejected):
    """What could not be looked at: where it is a folder, nobody knows what is in it now."""


def find_files(paths: Sequence[str], *, follow_links: bool = False) -> list[Path]:
    """Find the files that can be read: named ones, those in folders and below, those that patterns match, "-"."""
    return [each for each in find_files_and_rejected(paths, follow_links=follow_links) if isinstance(each, Path)]


def find_files_and_rejected(
    paths: Sequence[str], folder: Path = Path(), *, follow_links: bool = False
) -> list[Path | Rejected]:
    """Find files as `find_files` does, and between them what is not read, with the reason.

    folder: which paths that are relative are in; they are named as from there, and opened as `folder / path`.
    follow_links: whether links in folders and those that patterns match are read too.
    """
    if isinstance(paths, str) or not paths:
        raise RegardError(f"paths: given {paths!r}, needs a list of files, folders, patterns or '-'")
    found: list[Path | Rejected] = []
    names: dict[tuple[int, int], Path] = {}
    for given in paths:
        if given == "-":
            found += [STANDARD_INPUT] * (STANDARD_INPUT not in found)
            continue
        several, there, named = _expand_input_path(given, folder, follow_links)
        entries, known = _walk(there, names, folder, None if follow_links else named)
        if several and not known:
            for each in entries:
                if isinstance(each, Unseen) and os.path.isdir(folder / each.source):
                    raise RegardError(f"{each.source!r} {each.reason}")
            seen = ", ".join(_counted(entries)) or "nothing that is not hidden"
            raise RegardError(f"{given!r} holds nothing to read: found {seen}; {NEEDED}")
        found += entries
    if not any(isinstance(each, Path) for each in found):
        raise RegardError(f"nothing to read in {', '.join(map(repr, paths[:_MOST_NAMED]))}: {NEEDED}")
    return found


def _expand_input_path(given: str, folder: Path, follow_links: bool) -> tuple[bool, list[Path], int]:
    """Look at a path: does it stand for several files, what is there, and how many of its parts have no wildcard."""
    place, parts = os.path.join(folder, given) if folder != Path() else given, Path(given).parts
    if os.path.isdir(place):
        return True, [Path(given)], len(parts)
    if not os.path.lexists(place) and glob.has_magic(given):
        named = next(n for n, part in enumerate(parts) if glob.has_magic(part))
        if follow_links or "**" not in parts:
            matches = [Path(match) for match in glob.glob(given, root_dir=folder, recursive=True)]
        else:  # glob's ** goes through links, and round in circles: here links to folders are matches, to be counted
            top, inside = Path(*parts[:named]), folder / Path(*parts[:named])
            links = [Path(at, n) for at, names, _ in os.walk(inside) for n in names if os.path.islink(f"{at}/{n}")]
            within = {each.relative_to(inside) for each in [*inside.glob("/".join(parts[named:])), *links]}
            hidden = any(part.startswith(".") for part in parts[named:])
            matches = [top / each for each in within if hidden or not any(n.startswith(".") for n in each.parts)]
        if not matches:
            raise RegardError(f"{given!r} matches no file")
        return True, sorted(matches, key=Path.as_posix), named
    check_regular(place)
    return False, [Path(given)], len(parts)


def _walk(
    paths: Iterable[Path], names: dict[tuple[int, int], Path], folder: Path, named: int | None
) -> tuple[list[Path | Rejected], bool]:
    """List files that are not listed yet, and those in folders and below, in order; and tell whether any can be read.

    names: of each file and folder on the disk the path under which it is listed, added to here. named: how many parts
    of each path are no link to pass over, None to follow every link.
    """
    found: list[Path | Rejected] = []
    known = False
    ahead = list(reversed(list(paths)))
    while ahead:
        path = ahead.pop()
        name = path.as_posix()
        try:
            name.encode()
            at = folder / path
            if named is not None and (link := _link_on(path, named, folder)) is not None:
                passed = Rejected(link.as_posix(), None, LINK)
                found += [passed] * (passed not in found[-1:])  # a pattern may find many files behind one link
                continue
            status = at.stat()
            several = stat.S_ISDIR(status.st_mode)
            place = status.st_dev, status.st_ino
            first = names.get(place)
            if first is not None and os.path.abspath(folder / first) == os.path.abspath(at):
                known = known or several or kind_of(path) is not None  # listed already, by a path before this one
            elif first is not None:
                known = True
                what = "folder" if several else "file"
                found.append(Rejected(name, None, f"it is the same {what} as {first.as_posix()!r}, which is read"))
            elif several:
                names[place] = path
                inside = sorted(each for each in os.listdir(at) if not each.startswith("."))
                ahead += [path / each for each in reversed(inside)]
            elif not stat.S_ISREG(status.st_mode):
                found.append(Rejected(name, None, "it needs to be a regular file"))
            elif kind_of(path) is None:
                found.append(Rejected(name, None, f"it is of no known kind; {NEEDED}"))
            else:
                known, names[place] = True, path
                found.append(path)
        except UnicodeEncodeError:
            shown = os.fsencode(name).decode("utf-8", "backslashreplace")
            found.append(Rejected(shown, None, "its name is no UTF-8"))
        except OSError as error:  # a link to nothing or to itself, or a folder that is not ours to read
            found.append(Unseen(name, None, f"cannot be read: {error.strerror or error}"))
    return found, known


def _link_on(path: Path, named: int, folder: Path) -> Path | None:
    """Find the first link among a path's parts, after those that were named."""
    parts = (Path(*path.parts[:n]) for n in range(named + 1, len(path.parts) + 1))
    return next((part for part in parts if os.path.islink(folder / part)), None)


def _counted(entries: Iterable[Path | Rejected]) -> list[str]:
    """Count what was found by its ending, for a message."""
    behind = "behind links, which --follow-links reads"
    rejected = [each for each in entries if isinstance(each, Rejected)]
    endings = Counter(behind if each.reason == LINK else Path(each.source).suffix for each in rejected)
    ranked = sorted(endings.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {ending or 'without an ending'}" for ending, count in ranked[:_MOST_NAMED]]
    rest = sum(count for _, count in ranked[_MOST_NAMED:])
    return [*named, f"{rest} others"] if rest else named
