import numpy as np
import pytest

import regard
from regard.corpus.store import Store
from regard.errors import RegardError


def kinds(lines) -> set[str]:
    return {line.metadata["kind"] for line in lines}


def test_two_senses_with_examples_and_words(bank_store: Store) -> None:
    found = bank_store.senses("bank", checked=0)
    assert len(found.senses) == 2
    assert sum(each.occurrences for each in found.senses) == 16
    by_kind = {next(iter(kinds(each.examples))): each for each in found.senses}
    assert all(len(kinds(each.examples)) == 1 for each in found.senses)
    assert "river" in {each.word for each in by_kind["river"].words}
    assert "money" in {each.word for each in by_kind["money"].words}
    assert all(each.score > 2 for sense in found.senses for each in sense.words)
    river = next(each for each in by_kind["river"].words if each.word == "river")
    assert (river.near, river.near_others, river.checked, river.changed) == (6, 0, 0, None)
    rows = found.rows()
    assert len(rows) == 16
    assert [row["sense"] for row in rows] == sorted(row["sense"] for row in rows)
    assert {(row["sense"], row["metadata.kind"]) for row in rows} == {
        (each.name, kind) for kind, each in by_kind.items()
    }
    assert found.points.shape == (16, 2)


def test_each_word_is_cut_and_the_occurrence_embedded_again(bank_store: Store, minilm) -> None:
    found = bank_store.senses("bank", checked=8, words=3)
    causes = [each for sense in found.senses for each in sense.words if each.checked]
    assert causes
    for each in causes:
        assert 0 <= each.changed <= 1
        assert each.moved > 0
    assert np.mean([each.moved for each in causes]) > np.mean([each.random_moved for each in causes])
    assert bank_store.senses("bank", checked=8, words=3).senses == found.senses


@pytest.mark.parametrize("layer", [3, 5])
def test_what_a_cut_moves_is_what_a_trace_says(bank_store: Store, minilm, layer: int) -> None:
    """One occurrence, one word: 1 - cosine of the traces with and without the edges."""
    found = bank_store.senses("bank", 2, checked=30, layer=layer, context=200)
    sense = next(each for each in found.senses if "money" in {word.word for word in each.words})
    word = next(each for each in sense.words if each.word == "money")
    moved = []
    for row in found.rows():
        text = f"{row['left']}{row['form']}{row['right']}"
        if row["sense"] == sense.name and "money" in text:
            cut = [regard.ablate(regard.edge("bank", "money"))]
            plain, ablated = minilm.trace(text), minilm.trace(text, interventions=cut)
            one, other = (
                (trace["bank"] if layer == 5 else trace.hidden_states[4][trace.word("bank")[0].tokens[0]]).double()
                for trace in (plain, ablated)
            )
            moved.append(1 - float(one @ other / one.norm() / other.norm()))
    assert word.checked == len(moved)
    assert word.moved == pytest.approx(np.mean(moved), abs=1e-5)


def test_one_sense_has_no_words_that_tell_it(bank_store: Store) -> None:
    found = bank_store.senses("bank", 1)
    assert [(each.occurrences, each.words) for each in found.senses] == [(16, ())]
    with pytest.raises(RegardError, match="k: got 17, expected 1 to 16"):
        bank_store.senses("bank", 17)
    with pytest.raises(RegardError, match="checked: got -1"):
        bank_store.senses("bank", checked=-1)


@pytest.mark.parametrize("verb", ["senses", "shift"])
def test_a_seed_is_any_that_random_numbers_take(bank_store: Store, verb: str) -> None:
    options = {"senses": {"k": 2, "checked": 2}, "shift": {"column": "kind", "rounds": 9}}[verb]
    for seed in (-1, 1 << 63):
        with pytest.raises(RegardError, match=f"seed: got {seed}, expected a whole number from 0 to"):
            getattr(bank_store, verb)("bank", seed=seed, **options)
    getattr(bank_store, verb)("bank", seed=(1 << 63) - 1, **options)
