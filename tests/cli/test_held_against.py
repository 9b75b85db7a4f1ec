"""Neutral sentences of one's own and static vectors: refused early, and used beside what is seen."""

import json
from pathlib import Path

import pytest

from regard.cli.held_against import ControlFile, StaticVectors, read_sentences
from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.explain.texts.summary import summarise
from regard.text.neutral_sentences import SENTENCES

OWN = [f"{begin} {{}}{end}" for begin in ("They saw the", "We spoke of the", "It was the", "I know the")
       for end in (".", " today.", ", he said.")]  # fmt: skip


def test_control_needs_words_to_compare_with(tmp_path) -> None:
    with pytest.raises(RegardError, match="--control needs --word and --compare"):
        ControlFile(tmp_path / "a.txt").check(Selection(word="bank"))
    ControlFile(None).check(Selection())
    assert ControlFile(None).sentences(Selection(word="bank")) is SENTENCES


def test_bad_sentences_are_refused_before_torch(regard_command, tmp_path) -> None:
    (tmp_path / "few.txt").write_text("A {}.\n")
    done = regard_command("see", "a bank", "--word", "bank", "--compare", "river", "--control", "few.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().splitlines() == [
        "regard: error: --control 'few.txt': 1 different sentences, needs 12 or more, one a line"
    ]


def test_they_are_what_is_held_against(regard_command, tmp_path) -> None:
    (tmp_path / "own.txt").write_text("\n".join(OWN))
    arguments = ("see", "We sat on the grassy bank.", "--word", "bank", "--compare", "river", "--json", "out.json")
    assert regard_command(*arguments, "--control", "own.txt").returncode == 0
    own = json.loads((tmp_path / "out.json").read_text())
    assert own["control"]["sentences"] == [each.replace("{}", "bank") for each in OWN]
    assert own["neutral"][0]["sentences"] == 12


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read: No such"), ("bank 1 x\n", "line 1: could not"), ("river 1 2\n", "no vector for 'bank'")],
)
def test_a_bad_table_is_refused_before_a_model_is_loaded(regard_command, tmp_path, monkeypatch, content, says) -> None:
    if content is not None:
        (tmp_path / "v.txt").write_text(content)
    monkeypatch.setattr("regard.cli.source.load_model", None)  # whoever calls it fails
    done = regard_command("see", "a bank", "--word", "bank", "--compare", "river", "--static", "v.txt")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr


def test_static_needs_words() -> None:
    for chosen in (Selection(), Selection(word="bank")):
        with pytest.raises(RegardError, match="--static needs --word and --compare"):
            StaticVectors("learned").check(chosen)
        StaticVectors(None).check(chosen)
    assert StaticVectors("learned").read(Selection(word="bank")).found == {}


def test_a_file_s_and_the_model_s(bank, minilm, tmp_path: Path) -> None:
    references = [minilm.trace("river"), minilm.trace("money")]
    seen = summarise(bank, "bank", references=references)
    assert StaticVectors(None).beside(seen, bank, references) is seen
    learned = StaticVectors("model").beside(seen, bank, references).static
    assert learned is not None
    assert learned.source == "the token embeddings of all-MiniLM-L6-v2"
    assert [each.word for each in learned.words] == ["bank", "river", "money"]
    assert learned.width == 384
    file = tmp_path / "glove.txt"
    file.write_text("bank 3 4 0\nriver 0 5 0\n")
    vectors = StaticVectors(str(file)).read(Selection(word="bank", references="river,money"))
    found = vectors.beside(seen, bank, references).static
    assert found is not None
    assert found.source == str(file)
    assert [each.cosine for each in found.words] == pytest.approx([1.0, 0.8, None])


def written(folder, content: bytes | str):
    file = folder / "neutral.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_file_has_one_sentence_a_line(tmp_path) -> None:
    lines = [f"Satz {n}: die {{}}." for n in range(12)]
    file = written(tmp_path, "\ufeff" + "\r\n".join([*lines, "", lines[0], "  "]))
    assert read_sentences(file, "Bank") == lines


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("A {}.\n" * 20, "1 different sentences, needs 12 or more, one a line"),
        ("", "0 different sentences, needs 12 or more"),
        ("A {}.\n\nA house.", r"line 3, 'A house.', has neither 'bank' nor \{\} in its place"),
        (b"\xff\xfe\x00A", "is no text in UTF-8: needs one sentence a line"),
    ],
)
def test_a_bad_file_gets_one_line(tmp_path, content, says) -> None:
    with pytest.raises(RegardError, match=f"^--control '.*neutral.txt':? {says}") as caught:
        read_sentences(written(tmp_path, content), "bank")
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path) -> None:
    with pytest.raises(RegardError, match=r"--control '.*gone.txt' cannot be read: No such file"):
        read_sentences(tmp_path / "gone.txt", "bank")
    with pytest.raises(RegardError, match="--control '.*' cannot be read: it needs to be"):
        read_sentences(tmp_path, "bank")
