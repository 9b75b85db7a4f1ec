"""Neutral sentences of one's own: refused early, and used in the place of the package's."""

import json

import pytest

from regard.cli.control_file import ControlFile, traced_control
from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.text.neutral_sentences import SENTENCES

OWN = [f"{begin} {{}}{end}" for begin in ("They saw the", "We spoke of the", "It was the", "I know the")
       for end in (".", " today.", ", he said.")]  # fmt: skip


def test_it_needs_words_to_compare_with(tmp_path) -> None:
    with pytest.raises(RegardError, match="--control needs --word and --with"):
        ControlFile(tmp_path / "a.txt").check(Selection(word="bank"))
    ControlFile(None).check(Selection())
    assert ControlFile(None).sentences(Selection(word="bank")) is SENTENCES
    assert traced_control(None, [], Selection(word="bank"), SENTENCES) is None  # nothing is traced without --with


def test_bad_sentences_are_refused_before_torch(regard_command, tmp_path) -> None:
    (tmp_path / "few.txt").write_text("A {}.\n")
    done = regard_command("see", "a bank", "--word", "bank", "--with", "river", "--control", "few.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines() == [
        "regard: error: --control 'few.txt': 1 different sentences, needs 12 or more, one a line"
    ]


def test_they_are_what_is_held_against(regard_command, tmp_path) -> None:
    (tmp_path / "own.txt").write_text("\n".join(OWN))
    arguments = ("see", "We sat on the grassy bank.", "--word", "bank", "--with", "river", "--json", "out.json")
    assert regard_command(*arguments, "--control", "own.txt").returncode == 0
    own = json.loads((tmp_path / "out.json").read_text())
    assert own["control"]["sentences"] == [each.replace("{}", "bank") for each in OWN]
    assert own["neutral"][0]["sentences"] == 12
