"""A corpus of all kinds of files, in one order; and what is wrong in one of them keeps no other from being read."""

import gzip
import io
import itertools
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pandas
import pyarrow as pa
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading.document import DEFAULT, Columns, Document, Rejected
from regard.corpus.reading.documents import (
    LINK,
    cut_document_into_parts,
    find_files,
    find_files_and_rejected,
    read_documents,
    read_text_document,
)
from regard.corpus.reading.streams import BLOCK, opened
from regard.errors import RegardError
from tests.support import SHARED


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("c/b.txt", "c/a/z.csv", "c/a.txt", "c/B.JSONL.GZ", "c/.hidden.txt", "c/.git/x.txt", "d.parquet"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("a")
    return tmp_path


def names(*paths: str, links: bool = True) -> list[str]:
    return [path.as_posix() for path in find_files(paths, follow_links=links)]


def told(*paths: str, links: bool = True) -> dict[str, str]:
    found = find_files_and_rejected(paths, follow_links=links)
    return {each.source: each.reason for each in found if isinstance(each, Rejected)}


def test_folders_are_read_in_the_order_of_names(tree: Path) -> None:
    below = ["c/B.JSONL.GZ", "c/a/z.csv", "c/a.txt", "c/b.txt"]
    assert names("c") == names("./c/") == below
    assert names("d.parquet", "-", "c", "-") == ["d.parquet", "-", *below]
    assert names(str(tree / "c"))[0] == f"{tree.as_posix()}/c/B.JSONL.GZ"
    assert told("c") == {}


def test_patterns(tree: Path) -> None:
    assert names("c/*.txt") == ["c/a.txt", "c/b.txt"]
    assert names("**/*.csv") == ["c/a/z.csv"]
    assert names("c/a*") == ["c/a/z.csv", "c/a.txt"] or names("c/a*") == ["c/a.txt", "c/a/z.csv"]
    Path("c/[1].txt").write_text("a")
    assert names("c/[1].txt") == ["c/[1].txt"]  # a file's own name comes first
    with pytest.raises(RegardError, match=r"^'\*\.gz' matches no file$"):
        find_files(["*.gz"])


def test_each_file_is_read_once(tree: Path) -> None:
    assert names("c/b.txt", "c", "c/a", "./c/b.txt", str(tree / "c")) == [
        "c/b.txt",
        "c/B.JSONL.GZ",
        "c/a/z.csv",
        "c/a.txt",
    ]
    assert told("c/b.txt", "c", "c/a", "./c/b.txt", str(tree / "c")) == {}
    Path("c/link.txt").symlink_to("b.txt")
    os.link("c/a.txt", "c/hard.txt")
    assert told("c") == {
        "c/link.txt": "it is the same file as 'c/b.txt', which is read",
        "c/hard.txt": "it is the same file as 'c/a.txt', which is read",
    }
    Path("bare").write_text("a")
    Path("c/named.txt").symlink_to("../bare")
    assert "c/named.txt" in names("bare", "c")


def test_links_to_folders_are_followed_once(tree: Path) -> None:
    Path("c/round").symlink_to("..")
    Path("c/a/self").symlink_to(".")
    Path("e").mkdir()
    Path("e/c").symlink_to("../c")
    assert names("e") == ["e/c/B.JSONL.GZ", "e/c/a/z.csv", "e/c/a.txt", "e/c/b.txt", "e/c/round/d.parquet"]
    assert told("e") == {
        "e/c/a/self": "it is the same folder as 'e/c/a', which is read",
        "e/c/round/c": "it is the same folder as 'e/c', which is read",
        "e/c/round/e": "it is the same folder as 'e', which is read",
    }


def test_links_are_followed_only_on_request_or_by_name(tree: Path) -> None:
    Path("e/f").mkdir(parents=True)
    Path("e/own.txt").write_text("a")
    for link, target in (
        ("e/up", ".."),
        ("e/file.txt", "../d.parquet"),
        ("e/near.txt", "own.txt"),
        ("e/f/c", "../../c"),
    ):
        Path(link).symlink_to(target)
    Path("named").symlink_to("e")
    every = {"file.txt", "near.txt", "up", "f/c"}
    for asked, start, links in (
        ("e", "e", every), ("named", "named", every), ("e/**/*.*", "e", every), ("e/**", "e", every),
        ("e/*.txt", "e", {"file.txt", "near.txt"}),
    ):  # fmt: skip
        assert names(asked, links=False) == [f"{start}/own.txt"]
        assert told(asked, links=False) == {f"{start}/{link}": LINK for link in links}
    for asked in ("e/f", "n*d/*.txt"):
        with pytest.raises(RegardError, match="'.* holds nothing to read: found 1 behind links, which --follow-links"):
            find_files([asked])
    assert names("e/file.txt", "e/up/c/*.txt", links=False) == ["e/file.txt", "e/up/c/a.txt", "e/up/c/b.txt"]


def test_what_cannot_be_read_in_a_folder_is_told(tree: Path) -> None:
    os.mkfifo("c/pipe.txt")
    Path("c/nowhere.txt").symlink_to("none")
    Path("c/circle").symlink_to("circle")
    Path("c/x.pdf").write_text("a")
    Path(os.fsdecode(b"c/\xff.txt")).write_text("a")
    needed = "needs files .txt, .jsonl or .csv (each also .gz or .zst), or .parquet"
    assert told("c") == {
        "c/pipe.txt": "it isn't a regular file",
        "c/nowhere.txt": "cannot be read: No such file or directory",
        "c/circle": "cannot be read: Too many levels of symbolic links",
        "c/x.pdf": f"it is of no known kind; {needed}",
        "c/\\xff.txt": "its name is no UTF-8",
    }
    assert told("c/x.pdf", "d.parquet") == {"c/x.pdf": f"it is of no known kind; {needed}"}


def test_what_leads_to_nothing(tree: Path) -> None:
    Path("pdfs").mkdir()
    with pytest.raises(
        RegardError, match=r"^'pdfs' holds nothing to read: found nothing that is not hidden; needs files"
    ):
        find_files(["c", "pdfs"])
    for name in ("1.pdf", "2.pdf", "Makefile", *(f"x.{n}" for n in range(6))):
        Path("pdfs", name).write_text("a")
    found = "2 .pdf, 1 without an ending, 1 .0, 1 .1, 1 .2, 3 others"
    with pytest.raises(RegardError, match=rf"^'pdfs' holds nothing to read: found {found}; needs files"):
        find_files(["pdfs"])
    with pytest.raises(RegardError, match=r"^nothing to read in 'pdfs/1.pdf': needs files .txt"):
        find_files(["pdfs/1.pdf"])
    os.mkfifo("pipe.txt")
    for asked, why in (
        ("none.txt", "'none.txt' cannot be read: No such file"),
        ("", "'' cannot be read: No such file"),
        ("a\0b", "cannot be read: embedded null"),
        ("pipe.txt", "'pipe.txt' cannot be read: it isn't a regular file"),
        ("/dev/null", "'/dev/null' cannot be read: it isn't"),
    ):
        with pytest.raises(RegardError, match=why):
            find_files(["c", asked])
    for nothing in ([], "c"):
        with pytest.raises(RegardError, match="expected a list of files"):
            find_files(nothing)


def test_in_another_folder_files_have_the_same_names(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["c/*.txt", "./c", f"../{tree.name}/d.parquet", str(tree / "c" / "a")]
    os.mkfifo("c/pipe.txt")
    here = find_files_and_rejected(asked)
    Path("e").mkdir()
    monkeypatch.chdir("e")
    assert find_files_and_rejected(asked, tree) == here
    assert [path.as_posix() for path in here if isinstance(path, Path)][:3] == ["c/a.txt", "c/b.txt", "c/B.JSONL.GZ"]
    with pytest.raises(RegardError, match="'../c/none.txt' cannot be read"):
        find_files_and_rejected(["c/none.txt"], Path(".."))


def test_a_named_folder_that_may_not_be_listed_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(RegardError, match=r"^'c' cannot be read: Permission denied$"):
        find_files_and_rejected(["d.parquet", "c"])


BOOK = SHARED / "data" / "moby_dick" / "moby_dick.txt"

NIGHTLY = pytest.mark.nightly
PIECES = [
    "a",
    "bc",
    " ",
    ".",
    "! ",
    "\n",
    "\r\n",
    "\n\n",
    "\r",
    "\n \t\n",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "👍🏽",
    "🇫🇷",
    "क्ष",
    "한",
    "한",
    "。",
    "）",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def documents(*paths: str, columns: Columns = DEFAULT, most: int = 200_000) -> list[Document]:
    found = list(read_documents(paths, columns, size=most))
    assert all(isinstance(each, Document) for each in found), found
    return [each for each in found if isinstance(each, Document)]


def write_all() -> None:
    """The same three texts in a file of each kind, in each compression."""
    texts = ["one", "two\n\nand more", "thr\u00e9e"]
    rows = "".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(texts)).encode()
    table = pandas.DataFrame({"text": texts, "n": range(3)})
    for name, content in (
        ("a.txt", "".join(texts).encode()),
        ("a.jsonl", rows),
        ("a.csv", table.to_csv(index=False).encode()),
    ):
        Path("c", name).write_bytes(content)
        Path("c", f"{name}.gz").write_bytes(gzip.compress(content))
        Path("c", f"{name}.zst").write_bytes(pa.compress(content, "zstd", asbytes=True))
    table.to_parquet("c/a.parquet")


def test_all_kinds_hold_the_same() -> None:
    Path("c").mkdir()
    write_all()
    found = documents("c")
    by_source: dict[str, list[Document]] = {}
    for each in found:
        by_source.setdefault(each.source, []).append(each)
    assert list(by_source) == [path.as_posix() for path in find_files(["c"])] == sorted(by_source)
    assert len(by_source) == 10
    for source, parts in by_source.items():
        if ".txt" in source:
            assert parts == [Document(source, "onetwo\n\nand morethr\u00e9e", 0, source, None, {})]
            continue
        assert [part.text for part in parts] == ["one", "two\n\nand more", "thr\u00e9e"]
        assert [part.metadata for part in parts] == [{"n": str(n)} for n in range(3)]
        lines = [2, 3, 6] if ".csv" in source else [1, 2, 3]
        assert [(part.id, part.line) for part in parts] == [(f"{source}:{line}", line) for line in lines]
    assert documents("c") == found  # the same sequence again


def test_cells_are_cut_as_texts_are() -> None:
    text = "".join(f"Sentence {n} of a text. " for n in range(100))
    Path("a.txt").write_text(text)
    Path("a.jsonl").write_text(json.dumps({"text": text, "date": "1851"}))
    whole, row = documents("a.txt", most=500), documents("a.jsonl", most=500)
    assert [(part.start, part.text) for part in whole] == [(part.start, part.text) for part in row]
    assert len(whole) > 4
    assert "".join(part.text for part in row) == text
    assert {(part.id, part.line, part.metadata["date"]) for part in row} == {("a.jsonl:1", 1, "1851")}


def test_standard_input_is_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("a")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO('{"text": "é"}\n'.encode())))
    assert documents("-", "a.txt") == [
        Document("-", '{"text": "é"}\n', 0, "-", None, {}),
        Document("a.txt", "a", 0, "a.txt", None, {}),
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\xff")))
    assert list(read_documents(["-"])) == [Rejected("-", None, "invalid UTF-8: byte 0xff at position 1")]
    monkeypatch.setattr(sys, "stdin", None)
    assert list(read_documents(["-"])) == [Rejected("-", None, "there is no standard input")]


def test_ids_that_are_there_twice() -> None:
    Path("a.csv").write_text("text,id\n" + "a long text. " * 20 + ",x\nb,y\nc,x\n")
    Path("b.jsonl").write_text('{"text": "d", "id": "y"}\n{"text": "e", "id": "a.txt"}\n')
    Path("a.txt").write_text("f g " * 100)
    found = list(read_documents(["a.csv", "b.jsonl", "a.txt"], Columns(id="id"), size=50))
    parts = [(each.id, each.text[0]) for each in found if isinstance(each, Document)]
    assert list(dict.fromkeys(parts)) == [("x", "a"), ("y", "b"), ("a.txt", "e")]
    assert len(parts) > 3
    assert [each for each in found if isinstance(each, Rejected)] == [
        Rejected("a.csv", 4, "the id 'x' is there already: 'a.csv', line 2"),
        Rejected("b.jsonl", 1, "the id 'y' is there already: 'a.csv', line 3"),
        Rejected("a.txt", None, "the id 'a.txt' is there already: 'b.jsonl', line 2"),
    ]
    assert len({each.id for each in documents("a.csv", "b.jsonl", "a.txt")}) == 6


def test_bad_files_between_good_ones() -> None:
    rows = b"".join(b'{"text": "%s"}\n' % random.Random(n).randbytes(30).hex().encode() for n in range(2000))
    Path("c").mkdir()
    for name, content in (
        ("1.txt", b"good"),
        ("2.txt", b""),
        ("3.jsonl.gz", gzip.compress(rows)[:-5000]),
        ("4.jsonl.zst", pa.compress(rows, "zstd", asbytes=True)[:-5000]),
        ("5.txt.gz", gzip.compress(rows)[:-5]),
        ("6.parquet", b"PAR1"),
        ("7.csv.gz", b"text\na"),
        ("8.pdf", b"%PDF"),
        ("9.txt", b"good, too"),
    ):
        Path("c", name).write_bytes(content)
    found = list(read_documents(["c"]))
    assert [each.id for each in found if isinstance(each, Document) and each.line is None] == ["c/1.txt", "c/9.txt"]
    rejected = {each.source[2:]: each for each in found if isinstance(each, Rejected)}
    assert list(rejected) == ["2.txt", "3.jsonl.gz", "4.jsonl.zst", "5.txt.gz", "6.parquet", "7.csv.gz", "8.pdf"]
    for name in ("3.jsonl.gz", "4.jsonl.zst"):
        read = [each.line for each in found if isinstance(each, Document) and each.source == f"c/{name}"]
        assert read == list(range(1, len(read) + 1))
        assert 100 < len(read) < 2000
        at = rejected[name]
        assert (at.line, at.reason) == (
            len(read) + 1,
            f"cannot be read: Truncated compressed stream; nothing after line {len(read):,} is read",
        )


def test_a_file_that_may_not_be_read() -> None:
    names = ("a.txt", "c.csv", "d.parquet")
    for name in names:
        Path(name).write_text("text\nb")
    denied = PermissionError(13, "Permission denied")
    with mock.patch.object(Path, "open", side_effect=denied):
        found = list(read_documents(names))
    assert found == [Rejected(name, None, "cannot be read: Permission denied") for name in names]
    with pytest.raises(RegardError, match="No such file"):
        read_documents(["none"])


PEAK = """
import resource, sys
from regard.corpus.reading.documents import Document, read_documents
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
parts = length = rejected = 0
for each in read_documents(sys.argv[1:]):
    if isinstance(each, Document):
        parts, length = parts + 1, length + len(each.text)
    else:
        rejected += 1
print(parts, length, rejected, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def peak(*paths: str) -> tuple[int, int, int, int]:
    """How many parts, characters and refusals there are, and how many KiB more were needed to read them."""
    command = [sys.executable, "-c", PEAK, *paths]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    parts, length, rejected, grown = map(int, done.stdout.split())
    return parts, length, rejected, grown


def write(path: str, pieces: Iterator[bytes]) -> None:
    with open(path, "wb") as file:
        file.writelines(pieces)


@pytest.mark.parametrize("size", [pytest.param(10**8, marks=pytest.mark.long), pytest.param(10**9, marks=NIGHTLY)])
def test_memory_does_not_grow_with_the_file(size: int) -> None:
    sentence = b"A whale, as the word is understood here, is a large animal. \n"
    write("a.txt", (sentence * 10_000 for _ in range(size // len(sentence) // 10_000)))
    parts, length, rejected, grown = peak("a.txt")
    assert (length, rejected) == (Path("a.txt").stat().st_size, 0)
    assert parts == pytest.approx(length / 200_000, rel=0.01)
    assert grown < 40_000
    Path("a.txt").unlink()
    write("a.csv", (b"text,n\n", *(sentence.replace(b",", b"")[:-1] + b",1\n" for _ in range(size // 500))))
    parts, length, rejected, grown = peak("a.csv")
    assert (parts, rejected) == (size // 500, 0)
    assert grown < 40_000
    frame = pandas.DataFrame({"text": [str(n) * 2_000 for n in range(size * 6 // 100_000)]})
    frame.to_parquet("a.parquet", row_group_size=60_000)
    parts, length, rejected, grown = peak("a.parquet")
    assert (parts, rejected) == (len(frame), 0)
    assert length > size / 3
    assert grown < 250_000


@pytest.mark.nightly
def test_a_line_of_100_megabytes() -> None:
    size = 100_000_000
    write("a.txt", iter([b"x" * size]))
    assert peak("a.txt")[:3] == (500, size, 0)
    assert peak("a.txt")[3] < 40_000
    write("a.jsonl", iter([b'{"text": "', b"x" * size, b'"}\n{"text": "after"}\n']))
    parts, length, rejected, grown = peak("a.jsonl")
    assert (parts, length, rejected) == (501, size + 5, 0)
    assert grown < 600_000
    write("b.jsonl", iter([b'{"text": "', b"x" * 2 * size, b'"}\n{"text": "after"}\n']))
    assert peak("b.jsonl")[:3] == (1, 5, 1)
    assert peak("b.jsonl")[3] < 300_000
    write("a.csv", iter([b"text,n\n", b"x" * size, b",1\nafter,2\n"]))
    assert peak("a.csv")[:3] == (1, 5, 1)


@pytest.mark.shared
@pytest.mark.skipif(not BOOK.is_file(), reason=f"no file {BOOK} (REGARD_SHARED names another place)")
def test_a_book() -> None:
    parts = documents(str(BOOK))
    text = BOOK.read_bytes().decode("utf-8-sig")
    assert "".join(part.text for part in parts) == text
    assert all(text.startswith(part.text, part.start) for part in parts)
    assert len(parts) > 5
    assert all(part.text.endswith(("\n\n", "\n\r\n")) for part in parts[:-1])  # the chapters' paragraphs stay whole
    assert sum(part.text.count("whale") for part in parts) == text.count("whale") > 1000


def test_in_another_folder_documents_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("c").mkdir()
    write_all()
    here = documents("c")
    Path("d").mkdir()
    monkeypatch.chdir("d")
    assert list(read_documents(["c"], folder=folder)) == here


def read_one(path: Path, content: bytes, most: int = 200_000) -> list[Document | Rejected]:
    path.write_bytes(content)
    return list(read_text_document("a.txt", lambda: opened(path), most))


def test_characters_stand_as_they_are(tmp_path: Path) -> None:
    text = "one\r\ntwo\rthree\u2028 \x85fo\u0301ur\n\ufeff"
    whole = Document("a.txt", text, 0, "a.txt", None, {})
    assert read_one(tmp_path / "a.txt", text.encode()) == [whole]
    assert read_one(tmp_path / "a.txt", text.encode("utf-8-sig")) == [
        whole
    ]  # its byte order mark is no character of it


def test_parts_count_the_characters_of_the_whole(tmp_path: Path) -> None:
    text = "".join(f"Line {n} é.\r\n" + "\r\n" * (n % 7 == 0) for n in range(4000))
    parts = [each for each in read_one(tmp_path / "a.txt", text.encode(), 1000) if isinstance(each, Document)]
    assert len(parts) > 40
    assert "".join(part.text for part in parts) == text
    assert all(text[part.start :].startswith(part.text) for part in parts)
    assert all(part.text.endswith("\r\n\r\n") for part in parts[:-1])
    assert {(part.id, part.source, part.line) for part in parts} == {("a.txt", "a.txt", None)}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b" \n\t\r\n" * BLOCK, "blank"),
        (b"a" * 3 * BLOCK + b"\0", f"binary: byte 0x00 at position {3 * BLOCK:,}"),
        (b"a" * 3 * BLOCK + b"\xe9t\xe9", f"invalid UTF-8: byte 0xe9 at position {3 * BLOCK:,}"),
    ],
)
def test_no_part_of_a_bad_text_is_given(tmp_path: Path, content: bytes, reason: str) -> None:
    assert read_one(tmp_path / "a.txt", content, 1000) == [Rejected("a.txt", None, reason)]


def blocks(text: str, size: int) -> list[str]:
    return [text[n : n + size] for n in range(0, len(text), size)]


@given(TEXTS, st.integers(1, 40), st.integers(1, 50))
def test_parts_are_the_text(text: str, most: int, size: int) -> None:
    parts = list(cut_document_into_parts(blocks(text, size), most))
    assert "".join(part for _, part in parts) == text
    starts = [0, *itertools.accumulate(len(part) for _, part in parts)]
    assert [start for start, _ in parts] == starts[:-1]
    assert all(0 < len(part) <= most for _, part in parts)
    assert all(len(part) > most // 2 for _, part in parts[:-1])
    assert parts == list(cut_document_into_parts([text], most))


@given(TEXTS, st.integers(40, 60))
def test_what_a_reader_sees_as_one_character_is_not_cut(text: str, most: int) -> None:
    edges = {0, *itertools.accumulate(map(len, regex.findall(r"\X", text)))}
    assert {start for start, _ in cut_document_into_parts([text], most)} <= edges


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two\n\nthree. four\nfive six seven", "one two\n\n"),
        ("one two\r\n \t\r\nthree. four\nfive six", "one two\r\n \t\r\n"),
        ("one two\nthree. four five six seven", "one two\n"),
        ("one two\rthree. four five six seven", "one two\r"),
        ("one two. three four five six seven", "one two. "),
        ('one "two." three four five six', 'one "two." '),
        ("一二三四五六七。八九十一二三四五六七八", "一二三四五六七。"),
        ("one two three four five six seven", "one two three "),
        ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmno"),
        ("one\n\ntwo three four five six", "one\n\ntwo three "),  # no blank line in its second half
        ("abcdefghijklmn\r\nop", "abcdefghijklmn"),
        ("a" * 14 + "e\u0301" + "b" * 9, "a" * 14),
        ("🇫🇷" * 20, "🇫🇷" * 7),
    ],
)
def test_where_the_first_part_ends(text: str, first: str) -> None:
    assert next(cut_document_into_parts([text], 15)) == (0, first)


def test_what_has_no_place_to_be_cut_is_cut_all_the_same() -> None:
    assert [len(part) for _, part in cut_document_into_parts(["a" + "\u0301" * 99], 10)] == [10] * 10


def test_no_more_than_a_part_and_a_block_is_held() -> None:
    tracemalloc.start()
    assert (
        sum(len(part) for _, part in cut_document_into_parts(itertools.repeat("one two " * 10_000, 30), 200_000))
        == 2_400_000
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20
