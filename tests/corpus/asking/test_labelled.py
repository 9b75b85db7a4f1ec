from pathlib import Path

import pytest

from regard.corpus.asking.labelled import Labelled, read_labelled
from regard.corpus.asking.places import Place
from regard.errors import RegardError


def written(folder: Path, text: str) -> Path:
    file = folder / "a.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_words_are_found_by_their_number(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '\ufeffsentence,position,label,word\n"The (Bank), he said.",1,money,\nTwo  banks of\u00a0clay,1, river ,bank\n',
    )
    first, second = read_labelled(file)
    assert first == Labelled(Place("The (Bank), he said.", 5, 9), "bank", "money")
    assert first.place.form == "Bank"
    assert (second.place.form, second.word, second.label) == ("banks", "bank", "river")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence,label\na,b\n", "has no column 'position', needs sentence, position, label"),
        ("sentence,position,label\n", "given no labelled sentence"),
        ("", "has no column 'sentence'"),
        ("sentence,position,label\na b,2,x\n", "line 2: given position '2', the sentence has words 0 to 1"),
        ("sentence,position,label\na b,-1,x\n", "line 2: given position '-1'"),
        ("sentence,position,label\na b,1\n", "line 2: the label is empty"),
        ("sentence,position,label\n,0,x\n", "line 2: given position '0', the sentence has words none, it is empty"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read_labelled(written(tmp_path, text))


def test_what_is_no_file_or_no_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"none.csv' cannot be read: No such file"):
        read_labelled(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"sentence,position,label\n\xff,0,a\n")
    with pytest.raises(RegardError, match=r"b.csv' cannot be read"):
        read_labelled(tmp_path / "b.csv")
