"""The neutral sentences: those of the package, and a person's own from a file."""

import re

import pytest

from regard import RegardError
from regard.text.neutral_sentences import LEAST, SENTENCES, SLOT, neutral_sentences, read_sentences
from regard.text.words import words_of


def test_those_of_the_package_have_one_place_first_last_and_between() -> None:
    assert len(SENTENCES) == len(set(SENTENCES)) == 39 >= LEAST
    assert all(sentence.count(SLOT) == 1 for sentence in SENTENCES)
    places = [sentence.split().index(next(w for w in sentence.split() if SLOT in w)) for sentence in SENTENCES]
    last = sum(SLOT + "." in sentence or SLOT + "?" in sentence for sentence in SENTENCES)
    assert {0, 1, 2, 3, 4, 5} <= set(places)
    assert 6 <= last <= 24
    # no article that depends on the word, and nothing of what benchmarks hold against them
    assert not any(re.search(r"\ban? \{\}", sentence) for sentence in SENTENCES)
    told = {word.casefold() for sentence in SENTENCES for word in words_of(sentence)}
    assert not told & {"river", "money", "loan", "deposit", "water", "stream", "cash"}


def test_the_word_goes_in_as_it_is_spelled() -> None:
    assert neutral_sentences("New York")[1] == "She asked him about the New York."
    assert neutral_sentences("bank", ["My Bank is here.", "A {}."]) == ["My Bank is here.", "A bank."]
    with pytest.raises(RegardError, match=r"control: sentence 2, 'A house.', has neither 'bank' nor \{\} in its place"):
        neutral_sentences("bank", ["A {}.", "A house."])
    with pytest.raises(RegardError, match="neutral_sentences: given ' ', needs a word"):
        neutral_sentences(" ")
    with pytest.raises(RegardError, match="control: given str, needs a list of sentences"):
        neutral_sentences("bank", "A {}.")


def written(folder, content: bytes | str):
    file = folder / "neutral.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_file_has_one_sentence_a_line(tmp_path) -> None:
    lines = [f"Satz {n}: die {{}}." for n in range(12)]
    file = written(tmp_path, "\ufeff" + "\r\n".join([*lines, "", lines[0], "  "]))
    assert read_sentences(file, "Bank", "--control") == lines


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
        read_sentences(written(tmp_path, content), "bank", "--control")
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path) -> None:
    with pytest.raises(RegardError, match=r"--control '.*gone.txt' cannot be read: No such file"):
        read_sentences(tmp_path / "gone.txt", "bank", "--control")
    with pytest.raises(RegardError, match="--control '.*' cannot be read: it is a folder"):
        read_sentences(tmp_path, "bank", "--control")
