"""A store has every question as its method, and its heads' scores are those of its texts."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.corpus.embed_texts import embed
from regard.corpus.questions.find import find
from regard.corpus.questions.senses.answer import find_senses
from regard.corpus.questions.shift import find_shift
from regard.corpus.settings import Settings
from regard.corpus.store import Store, head_means
from regard.errors import RegardError
from regard.explain.weights.head_scores import NAMES, head_scores

TEXTS = ["The cat saw the cat and the dog saw the dog.", "We sat on the bank of the river, and the river rose."]


def test_the_methods_take_what_the_functions_take_with_the_same_defaults() -> None:
    for method, function in ((Store.find, find), (Store.senses, find_senses), (Store.shift, find_shift)):
        mine, theirs = (list(inspect.signature(each).parameters.values())[1:] for each in (method, function))
        assert [(each.name, each.default, each.kind) for each in mine] == [
            (each.name, each.default, each.kind) for each in theirs
        ]


def test_a_store_answers_every_question(bank_store: Store) -> None:
    assert bank_store.find("bank").total == 16
    assert len(bank_store.senses("bank", 2, checked=0).senses) == 2
    assert bank_store.shift("bank", column="kind").change.p <= 0.01
    assert bank_store.sql("SELECT count(*) AS n FROM rows WHERE word = 'bank'").to_pylist() == [{"n": 16}]


@pytest.fixture(scope="module")
def store(minilm: Any, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("heads")
    for number, text in enumerate(TEXTS):
        (folder / f"{number}.txt").write_text(text, "utf-8")
    embed([folder / "0.txt", folder / "1.txt"], folder / "store", model=minilm, settings=Settings(shard=10))
    return Store(folder / "store")


def test_means_of_a_corpus_weigh_its_texts_by_their_queries(minilm: Any, store: Store) -> None:
    found, each = store.stats().tables["corpus"], [head_scores(minilm.trace(text)) for text in TEXTS]
    assert len(store.manifest.shards) == 2
    assert found.counts["queries"] == sum(scores.queries for scores in each)
    over = {"duplicate": "duplicates", "induction": "inductions"}
    for name in set(NAMES) - {"sinks"}:
        counts = [getattr(scores, over.get(name, "queries")) for scores in each]
        expected = sum(n * getattr(s, name).numpy() for n, s in zip(counts, each, strict=True)) / sum(counts)
        np.testing.assert_allclose(found.scores[name], expected, rtol=1e-5, atol=1e-7)
    rows = found.rows()
    assert (len(rows), rows[13]["layer"], rows[13]["head"]) == (72, 1, 1)
    layer, head, score = found.best("previous", 1)[0]
    assert score == found.scores["previous"].max() == found.scores["previous"][layer, head]


def test_a_store_without_statistics_is_refused(minilm: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A bank.", "utf-8")
    embed(tmp_path / "a.txt", tmp_path / "store", model=minilm, settings=Settings(statistics=False))
    with Store(tmp_path / "store") as store, pytest.raises(RegardError, match="made with --no-statistics"):
        head_means(store)
