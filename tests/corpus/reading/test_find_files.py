"""The files of a corpus: in one order, each once, and of all that is not read it is said why."""

import os
from pathlib import Path

import pytest

from regard.corpus.reading.document import Rejected
from regard.corpus.reading.find_files import LINK, find_files, find_files_and_rejected
from regard.errors import RegardError


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
    for given, start, links in (
        ("e", "e", every), ("named", "named", every), ("e/**/*.*", "e", every), ("e/**", "e", every),
        ("e/*.txt", "e", {"file.txt", "near.txt"}),
    ):  # fmt: skip
        assert names(given, links=False) == [f"{start}/own.txt"]
        assert told(given, links=False) == {f"{start}/{link}": LINK for link in links}
    for given in ("e/f", "n*d/*.txt"):
        with pytest.raises(RegardError, match="'.* holds nothing to read: found 1 behind links, which --follow-links"):
            find_files([given])
    assert names("e/file.txt", "e/up/c/*.txt", links=False) == ["e/file.txt", "e/up/c/a.txt", "e/up/c/b.txt"]


def test_what_cannot_be_read_in_a_folder_is_told(tree: Path) -> None:
    os.mkfifo("c/pipe.txt")
    Path("c/nowhere.txt").symlink_to("none")
    Path("c/circle").symlink_to("circle")
    Path("c/x.pdf").write_text("a")
    Path(os.fsdecode(b"c/\xff.txt")).write_text("a")
    needed = "needs files .txt, .jsonl or .csv (each also .gz or .zst), or .parquet"
    assert told("c") == {
        "c/pipe.txt": "it needs to be a regular file",
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
    for given, why in (
        ("none.txt", "'none.txt' cannot be read: No such file"),
        ("", "'' cannot be read: No such file"),
        ("a\0b", "cannot be read: embedded null"),
        ("pipe.txt", "'pipe.txt' cannot be read: it needs to be a regular file"),
        ("/dev/null", "'/dev/null' cannot be read: it needs to be"),
    ):
        with pytest.raises(RegardError, match=why):
            find_files(["c", given])
    for nothing in ([], "c"):
        with pytest.raises(RegardError, match="needs a list of files"):
            find_files(nothing)


def test_in_another_folder_files_have_the_same_names(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["c/*.txt", "./c", f"../{tree.name}/d.parquet", str(tree / "c" / "a")]
    os.mkfifo("c/pipe.txt")
    here = find_files_and_rejected(given)
    Path("e").mkdir()
    monkeypatch.chdir("e")
    assert find_files_and_rejected(given, tree) == here
    assert [path.as_posix() for path in here if isinstance(path, Path)][:3] == ["c/a.txt", "c/b.txt", "c/B.JSONL.GZ"]
    with pytest.raises(RegardError, match="'../c/none.txt' cannot be read"):
        find_files_and_rejected(["c/none.txt"], Path(".."))


def test_a_named_folder_that_may_not_be_listed_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(RegardError, match=r"^'c' cannot be read: Permission denied$"):
        find_files_and_rejected(["d.parquet", "c"])
