from pathlib import Path

import numpy as np
import pytest

from regard.corpus.schema import ModelSummary
from regard.corpus.store import Store
from regard.errors import RegardError
from tests.support.stores import Document, write_store

MODEL = ModelSummary("made", "made", "d", 6, 12, 13)


def made(
    folder: Path, documents: int, senses: list[int], seed: int, column: str = "", model: ModelSummary = MODEL
) -> Path:
    """A store of documents with "bank" three times, whose vectors stand around the axes of the senses.

    In turn, or, of senses that begin with -1, in an order of their own.
    """
    random = np.random.default_rng(seed)
    texts = [Document(f"d{n}", "bank bank bank", {"age": column or "ab"[n % 2]}) for n in range(documents)]
    axes = np.resize([each for each in senses if each >= 0], 3 * documents)
    axes = random.permutation(axes) if senses[0] < 0 else axes
    vectors = 4 * np.eye(13)[axes] + 0.5 * random.standard_normal((3 * documents, 13))
    return write_store(folder, [(texts, vectors[:, None].astype(np.float16))], model=model)


def test_a_sense_that_came_and_one_that_went(tmp_path: Path) -> None:
    with Store(made(tmp_path / "old", 20, [0, 0, 1], 0)) as old, Store(made(tmp_path / "new", 30, [0, 2, 0], 1)) as new:
        found = old.shift("bank", new)
        assert found.groups == ("old", "new")
        assert (found.permuted, found.change.units, found.change.p) == ("documents", (20, 30), 1 / 1000)
        assert [(each.occurrences, each.fate) for each in found.senses] == [
            ((40, 60), "kept"), ((0, 30), "gained"), ((20, 0), "lost")
        ]  # fmt: skip
        assert found.senses[1].shares == (0.0, pytest.approx(1 / 3))
        assert [len(each) for each in found.senses[1].examples] == [0, 3]
        rows = found.rows()
        assert len(rows) == 150
        assert {(row["group"], row["sense"]) for row in rows} == {
            ("old", "1"),
            ("old", "3"),
            ("new", "1"),
            ("new", "2"),
        }
        assert found.notes == ()


def test_the_same_words_have_not_changed(tmp_path: Path) -> None:
    with Store(made(tmp_path / "a", 60, [-1, 0, 1], 0)) as store:
        found = store.shift("bank", column="age")
        assert found.groups == ("age=a", "age=b")
        assert found.change.p > 0.05
        assert {each.fate for each in found.senses} == {"kept"}
        swapped = store.shift("bank", column="age", values=("b", "a"))
        assert swapped.groups == ("age=b", "age=a")
        assert swapped.change.apd == pytest.approx(found.change.apd)


@pytest.mark.long  # 60 stores
def test_false_alarms_of_random_halves_and_an_injected_change(tmp_path: Path) -> None:
    """60 stores without a change, halves by document: 3 alarms expected, 8 is three standard deviations above."""
    alarms = 0
    for seed in range(60):
        with Store(made(tmp_path / str(seed), 20, [-1, 0, 1, 0, 2], seed)) as store:
            alarms += store.shift("bank", column="age", rounds=99, k=1).change.p <= 0.05
    assert alarms <= 8
    with Store(made(tmp_path / "x", 20, [0, 0, 0, 3, 3, 3], 0)) as store:  # a document's vectors follow its age
        assert store.shift("bank", column="age").change.p <= 0.005


def test_few_documents_are_said_to_be_few(tmp_path: Path) -> None:
    with Store(made(tmp_path / "a", 4, [0, 1], 0)) as one, Store(made(tmp_path / "b", 9, [0, 1], 1)) as other:
        found = one.shift("bank", other)
        assert found.permuted == "occurrences"
        assert "4 documents" in found.notes[0]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with Store(made(tmp_path / "a", 6, [0], 0)) as one:
        with pytest.raises(RegardError, match="pass one of them"):
            one.shift("bank")
        with pytest.raises(RegardError, match="no document with the word has a column 'year'; there are age"):
            one.shift("bank", column="year")
        with pytest.raises(RegardError, match=r"got 1 value\(s\) of 'age', expected two: pass values= of a, b"):
            one.shift("bank", column="age", values=("a",))
        with pytest.raises(RegardError, match="no document with the word has 'age' 'c'; there are a, b"):
            one.shift("bank", column="age", values=("a", "c"))
        model = ModelSummary("else", "else", "e", 6, 12, 13)
        with (
            Store(made(tmp_path / "b", 6, [0], 0, model=model)) as other,
            pytest.raises(RegardError, match="have two models, made and else"),
        ):
            one.shift("bank", other)
    with Store(made(tmp_path / "c", 6, [0], 0, "old")) as alone, pytest.raises(RegardError, match="got 1 value"):
        alone.shift("bank", column="age")
