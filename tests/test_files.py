"""None"""

import json
import math
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.files import (
    check_output_file,
    check_readable,
    check_regular,
    expect_type,
    is_temporary,
    lock_folder,
    parse_json,
    read_json,
    read_regular,
    remove_leftovers,
    short,
    whole,
    write_json,
)

HOLDER = """
import sys
from pathlib import Path
from regard.files import lock_folder
kept = lock_folder(Path(sys.argv[1]), "taken", "unwritable")
print("locked", flush=True)
sys.stdin.readline()
"""


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
        ("a.gif", "file name must end in .png or .svg"),
        ("a", "file name must end in"),
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
            unread(tmp_path / name, "it isn't a regular file")
    unread(Path("/dev/zero"), "it isn't a regular file")
    unread(tmp_path / "nowhere", "No such file")
    unread(Path("a\0b"), "null")
    (tmp_path / "file").write_bytes(b"four")
    assert check_regular(tmp_path / "file") == 4
    assert read_regular(tmp_path / "file", most=4) == b"four"
    with pytest.raises(RegardError, match="it has 4 bytes, at most 3 are allowed"):
        read_regular(tmp_path / "file", most=3)


def test_a_device_is_no_input() -> None:
    with pytest.raises(RegardError, match="^--x '/dev/zero' cannot be read: it isn't a regular file$"):
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


def test_one_has_the_folder_until_it_lets_go(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path, "taken", "unwritable")
    with pytest.raises(RegardError, match="^taken$"):
        lock_folder(tmp_path, "taken", "unwritable")
    lock.release()
    lock_folder(tmp_path, "taken", "unwritable").release()
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match="^unwritable: "):
        lock_folder(tmp_path / "file", "taken", "unwritable")


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(RegardError, match="^taken$"):
            lock_folder(tmp_path, "taken", "unwritable")
        other.kill()
        other.wait()
    lock_folder(tmp_path, "taken", "unwritable").release()


def unread_json(path: Path, says: str) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        read_json(path, "the model's")
    assert str(caught.value).startswith(f"the model's {str(path)!r}")
    assert "\n" not in str(caught.value)


def test_json_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": [1, 2.5, null], "ü": {"b": true}}', encoding="utf-8")
    assert read_json(file) == {"a": [1, 2.5, None], "ü": {"b": True}}
    (tmp_path / "link.json").symlink_to(file)
    assert read_json(tmp_path / "link.json")["ü"] == {"b": True}
    file.write_text('{"limits": [0.0, Infinity]}')
    assert read_json(file) == {"limits": [0.0, float("inf")]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{ broken", "cannot be read: Expecting property name"),
        (b"", "cannot be read: Expecting value"),
        (b"[1]", "its content is .1., expected names"),
        (b'{"a": "\xff"}', "cannot be read: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 10**7, "nested too deep"),
    ],
    ids=lambda value: value[:12].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_json_that_is_none(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    unread_json(file, says)


def test_a_file_beyond_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"a": "x" * 100}))
    with pytest.raises(RegardError, match="it has 109 bytes, at most 108 are allowed"):
        read_regular(file, most=108)
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)  # holes: nothing is stored, and nothing is read
    unread_json(file, "1,099,511,627,776 bytes")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_what_was_written_is_read(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=True).encode()) == value


def test_json_is_written_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"ü": 0.1 + 0.2}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    with pytest.raises(ValueError, match="Out of range float"):
        write_json({"a": float("nan")}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    assert os.listdir(tmp_path) == ["a.json"]
    write_json({"ü": 1}, Path("-"))
    assert json.loads(capsys.readouterr().out) == {"ü": 1}


SAMPLES: dict[type | None, list[Any]] = {
    str: ["", "ä"], int: [0, -7, 1 << 53], float: [0.5, math.inf], bool: [True, False], list: [[], [1]],
    dict: [{}, {"a": 1}], None: [None],
}  # fmt: skip


@pytest.mark.parametrize("wanted", SAMPLES)
@pytest.mark.parametrize("given_type", SAMPLES)
def test_a_type_and_no_other(wanted: Any, given_type: Any) -> None:
    for value in SAMPLES[given_type]:
        if wanted is given_type or (wanted is float and given_type is int):  # JSON does not tell 1 from 1.0
            assert expect_type("it", value, wanted) is value
            assert expect_type("it", value, *SAMPLES) is value
        else:
            with pytest.raises(RegardError, match="^it is .*, expected "):
                expect_type("it", value, wanted)


@given(st.text())
def test_values_in_messages_are_short(text: str) -> None:
    assert len(short(text)) <= 40
    assert short(text) == repr(text) or repr(text).startswith(short(text)[:-1])


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
