import os
import socket
import stat
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.files import (
    check_output_file,
    check_readable,
    check_regular,
    is_temporary,
    read_regular,
    remove_leftovers,
    whole,
)


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
        for name in ("pipe", "to the pipe", "folder", "socket"):
            unread(tmp_path / name, "it needs to be a regular file")
    unread(Path("/dev/zero"), "it needs to be a regular file")
    unread(tmp_path / "nowhere", "No such file")
    unread(Path("a\0b"), "null")
    (tmp_path / "file").write_bytes(b"four")
    assert check_regular(tmp_path / "file") == 4
    assert read_regular(tmp_path / "file", most=4) == b"four"
    with pytest.raises(RegardError, match="it has 4 bytes, 3 are the most"):
        read_regular(tmp_path / "file", most=3)


def test_a_device_is_no_input() -> None:
    with pytest.raises(RegardError, match="^--x '/dev/zero' cannot be read: it needs to be a regular file$"):
        check_readable(Path("/dev/zero"), "--x")


def test_what_a_killed_save_left_is_removed(tmp_path: Path) -> None:
    own = tmp_path / ".regard-settings"
    own.write_text("not ours to remove")
    with whole(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        assert is_temporary(temporary.name)
        (left,) = (each for each in tmp_path.iterdir() if each != own)
        os.link(left, tmp_path / ".regard-01234567.part.txt")
    assert not is_temporary("a.txt")
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".regard-settings", "a.txt"]
