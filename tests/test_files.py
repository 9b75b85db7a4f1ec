import fcntl
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.files import (
    check_output_file,
    check_readable,
    check_regular,
    is_link,
    is_temporary,
    names_apart,
    read_regular,
    whole,
)
from regard.locks import AVAILABLE


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with whole(target) as temporary:
        temporary.write_text("all of it")
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(KeyError), whole(target) as temporary:
        temporary.write_text("half")
        raise KeyError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path: Path) -> None:
    plain, target = tmp_path / "plain", tmp_path / "target"
    plain.write_text("")
    with whole(target) as temporary:
        temporary.write_text("")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    target.chmod(0o640)
    with whole(target) as temporary:
        temporary.write_text("")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_file_is_written_out_by_a_handle_that_may_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows asks for, which has no locks either; also where the file in its place may only be read."""
    from regard import files

    real, written = os.fsync, []

    def windows(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & 3 == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        written.append(handle)
        real(handle)

    monkeypatch.setattr(os, "fsync", windows)
    monkeypatch.setattr(files, "AVAILABLE", False)
    target = tmp_path / "a.txt"
    for text in ("one", "two"):
        with whole(target) as temporary:
            temporary.write_text(text)
        assert target.read_text() == text
        target.chmod(0o440)
    assert len(written) == 2


def test_links_are_known_whether_they_lead_anywhere_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "to nothing").symlink_to("none")
    assert [is_link(tmp_path / name) for name in ("folder", "link", "to nothing", "none")] == [False, True, True, False]
    monkeypatch.setattr(os.path, "isjunction", lambda path: path == tmp_path / "folder", raising=False)
    assert is_link(tmp_path / "folder")  # what Windows has for a link to a folder


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.gif", "ending needs to be .png or .svg"),
        ("a", "ending needs to be"),
        ("folder.png", "it is a folder"),
        ("none/a.png", "there is no folder"),
    ],
)
def test_targets_that_cannot_be_written(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(RegardError, match=f"--figure: .*{says}"):
        check_output_file(tmp_path / name, (".png", ".svg"), "--figure")
    assert os.listdir(tmp_path) == ["folder.png"]


def test_a_folder_that_takes_no_files() -> None:
    with pytest.raises(RegardError, match="cannot write '/proc/a.png'"):
        check_output_file(Path("/proc/a.png"), (".png",), "--figure")
    with pytest.raises(RegardError, match="cannot write '/proc/a.png'"), whole("/proc/a.png"):
        pass


def test_a_good_target_leaves_no_trace(tmp_path: Path) -> None:
    check_output_file(tmp_path / "A.PNG", (".png",), "--figure")
    assert os.listdir(tmp_path) == []


def unread(path: Path, says: str) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        read_regular(path, "the model's")
    assert str(caught.value).startswith(f"the model's {str(path)!r}")
    assert "\n" not in str(caught.value)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to the pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        given = {"pipe": "a pipe", "to the pipe": "a pipe", "folder": "a folder", "socket": "a socket"}
        for name, kind in given.items():
            unread(tmp_path / name, f"it is {kind}, needs a regular file")
    unread(Path("/dev/zero"), "it is a device")
    unread(tmp_path / "nowhere", "No such file")
    unread(Path("a\0b"), "null")
    (tmp_path / "file").write_bytes(b"four")
    assert check_regular(tmp_path / "file") == 4
    assert read_regular(tmp_path / "file", most=4) == b"four"
    with pytest.raises(RegardError, match="it has 4 bytes, 3 are the most"):
        read_regular(tmp_path / "file", most=3)


def test_a_device_is_no_input() -> None:
    with pytest.raises(RegardError, match="^--x '/dev/zero' cannot be read: it is a device, needs a file$"):
        check_readable(Path("/dev/zero"), "--x")


SAVING = """
import sys
from regard.files import whole
with whole(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    sys.stdin.readline()
    temporary.write_text("whole")
"""


def saving(target: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process in the middle of a save, and its temporary file."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.skipif(not AVAILABLE, reason="the system has no locks on files")
def test_what_a_killed_save_left_is_removed_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    own = tmp_path / ".regard-settings"
    own.write_text("not ours to remove")
    killed, left = saving(tmp_path / "a.txt")
    living, written = saving(tmp_path / "b.txt")
    killed.kill()
    killed.communicate()
    assert left.read_text() == written.read_text() == "half"
    assert is_temporary(left.name)
    with whole(tmp_path / "c.txt") as temporary:
        temporary.write_text("all of it")
        assert not left.exists(), "the killed one's is gone at the next save beside it"
        assert written.exists(), "the living one's is not"
        assert temporary.exists()
    with whole(tmp_path / "d.txt") as outer, whole(tmp_path / "e.txt") as inner:  # nor one of this very process
        outer.write_text("outer")
        inner.write_text("inner")
    living.communicate("go on\n", timeout=60)
    assert living.returncode == 0
    assert (tmp_path / "b.txt").read_text() == "whole"
    assert sorted(os.listdir(tmp_path)) == [".regard-settings", "b.txt", "c.txt", "d.txt", "e.txt"]


@pytest.mark.skipif(not AVAILABLE, reason="the system has no locks on files")
def test_a_file_that_is_taken_for_a_leftover_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard import files

    real, taken = files.lock, []

    def late(handle: int, *, wait: bool = False) -> bool:
        if wait and not taken:  # another process comes in between
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        return real(handle, wait=wait)

    monkeypatch.setattr(files, "lock", late)
    with whole(tmp_path / "a") as temporary:
        temporary.write_text("all of it")
    assert len(taken) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_has_one_name_is_told_apart_by_where_it_is() -> None:
    given = ["/a/book", "/b/book", "/b/bank", "/a/x/deep", "/b/x/deep", "/c/y/deep", "/b/bank"]
    assert names_apart([Path(each) for each in given]) == [
        "a/book", "b/book", "bank", "a/x/deep", "b/x/deep", "y/deep", "bank"
    ]  # fmt: skip
    assert names_apart([Path("/book"), Path("/a/book")]) == ["/book", "a/book"]
