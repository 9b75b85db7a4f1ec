"""None"""

from pathlib import Path

import numpy as np
import pytest

from regard.corpus.asking.disambiguate import (
    FOLDS,
    Labelled,
    learn,
    read_labelled,
    stratified_folds,
)
from regard.corpus.asking.places import WordSpan, embed_places
from regard.errors import RegardError

RIVERS = (
    "The boat drifted towards the muddy bank", "Willows grew along the bank of the stream",
    "The river burst its bank", "He fished from the bank of the river", "Otters slid down the steep bank",
    "Reeds covered the far bank of the lake", "The canoe was pulled up on the bank",
    "They walked along the bank of the Thames",
)  # fmt: skip
MONEYS = (
    "She opened an account at the bank", "The bank raised its interest rates", "The bank refused him a loan",
    "He withdrew money from the bank", "Robbers held up the bank on Friday", "My bank charges a fee for transfers",
    "Shares of the bank fell by ten percent", "Her salary is paid into the bank",
)  # fmt: skip


def made(random: np.random.Generator) -> tuple[np.ndarray, list[str], list[str]]:
    """Two words of two and three labels: only layer 7 tells them apart."""
    words = ["bank"] * 34 + ["bat"] * 51
    labels = ["a", "b"] * 17 + ["a", "b", "c"] * 17
    vectors = random.standard_normal((85, 2, 13)).astype(np.float32)
    for number, (word, label) in enumerate(zip(words, labels, strict=True)):
        vectors[number, 1, "abc".index(label) + 3 * (word == "bat")] += 9
    return vectors, words, labels


def test_the_layer_that_tells_labels_apart_is_chosen() -> None:
    random = np.random.default_rng(0)
    vectors, words, labels = made(random)
    found = learn(vectors, words, labels, [3, 7])
    assert found.layer == 7
    assert found.tried[7] == 1.0
    assert found.tried[3] < 0.75
    assert found.accuracy.micro == found.accuracy.macro == 1.0


def test_accuracy_by_word_micro_and_macro_by_hand() -> None:
    """Vectors that say nothing of "bat": every vector of it is the same, so the first label is named always."""
    random = np.random.default_rng(1)
    vectors, words, labels = made(random)
    vectors[34:] = 1
    found = learn(vectors, words, labels, [3, 7]).accuracy
    (bank, bank_asked, _), (bat, bat_asked, _) = found.by_word["bank"], found.by_word["bat"]
    assert (bank, bank_asked) == (8, 8)  # a fifth of 17, twice
    assert (bat, bat_asked) == (4, 12)
    assert found.micro == 12 / 20
    assert found.macro == pytest.approx((1 + 1 / 3) / 2)
    assert found.most_frequent == 8 / 20


def test_what_is_put_aside_teaches_nothing() -> None:
    """Labels without any relation to the vectors: accuracy on the part that was put aside is that of chance."""
    rates = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        vectors = random.standard_normal((100, 3, 17)).astype(np.float32)
        rates.append(learn(vectors, ["w"] * 100, ["a", "b"] * 50, [0, 1, 2], seed=seed).accuracy.micro)
    assert abs(np.mean(rates) - 0.5) < 0.08  # three standard deviations of 400 answers


def test_folds_have_each_label_as_evenly_as_can_be() -> None:
    keys = [("w", "a")] * 13 + [("w", "b")] * 4 + [("v", "a")]
    folds = stratified_folds(keys, 0)
    counts = np.bincount(folds[:13], minlength=FOLDS)
    assert counts.max() - counts.min() == 1
    assert len(set(folds[13:17])) == 4
    assert folds[17] == -1
    assert (folds == stratified_folds(keys, 0)).all()


def test_too_little_to_learn_from_is_refused() -> None:
    vectors = np.ones((2, 1, 5), dtype=np.float32)
    with pytest.raises(RegardError, match="given no label that occurs three times"):
        learn(vectors, ["w", "w"], ["a", "b"], [0])


def test_bank_is_told_apart_by_the_model(minilm) -> None:
    examples = [
        Labelled(WordSpan(text, text.index("bank"), text.index("bank") + 4), "bank", label)
        for label, texts in (("river", RIVERS), ("money", MONEYS))
        for text in texts
    ]
    vectors = embed_places(minilm, [each.place for each in examples], range(6))
    found = learn(vectors, ["bank"] * 16, [each.label for each in examples], range(6))
    assert found.accuracy.by_word["bank"] == (4, 4, 2)
    assert found.labels == {"bank": ("money", "river")}
    assert len(found.tried) == 6


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
    assert first == Labelled(WordSpan("The (Bank), he said.", 5, 9), "bank", "money")
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
