"""One process at a time has a folder, until it lets go or ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.locks import is_locked, lock_folder

HOLDER = """
import sys
from pathlib import Path
from regard.locks import lock_folder
kept = lock_folder(Path(sys.argv[1]), "taken", "unwritable")
print("locked", flush=True)
sys.stdin.readline()
"""


def test_one_has_the_folder_until_it_lets_go(tmp_path: Path) -> None:
    assert is_locked(tmp_path) is False
    lock = lock_folder(tmp_path, "taken", "unwritable")
    assert is_locked(tmp_path) is True
    with pytest.raises(RegardError, match="^taken$"):
        lock_folder(tmp_path, "taken", "unwritable")
    lock.release()
    for _ in range(100):  # looking keeps nobody out
        assert is_locked(tmp_path) is False
    lock_folder(tmp_path, "taken", "unwritable").release()
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match="^unwritable: "):
        lock_folder(tmp_path / "file", "taken", "unwritable")


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        assert is_locked(tmp_path)
        other.kill()
        other.wait()
    lock_folder(tmp_path, "taken", "unwritable").release()
