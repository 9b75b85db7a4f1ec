import os
import stat
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.files import check_target, whole


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
        check_target(tmp_path / name, (".png", ".svg"), "--figure")
    assert os.listdir(tmp_path) == ["folder.png"]


def test_a_folder_that_takes_no_files() -> None:
    with pytest.raises(RegardError, match="cannot write '/proc/a.png'"):
        check_target(Path("/proc/a.png"), (".png",), "--figure")
    with pytest.raises(RegardError, match="cannot write '/proc/a.png'"), whole("/proc/a.png"):
        pass


def test_a_good_target_leaves_no_trace(tmp_path: Path) -> None:
    check_target(tmp_path / "A.PNG", (".png",), "--figure")
    assert os.listdir(tmp_path) == []
