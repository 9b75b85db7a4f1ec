"""None"""

import json
import math
from pathlib import Path

import jsonschema
import pytest
import torch

import regard
from regard.explain.vectors.similarity import (
    across_layers,
    across_texts,
    cosine,
    learned_words,
    states_of,
    static_words,
    table,
)
from tests.support import MONEY, RIVER, run_all_in_process


def test_two_vectors() -> None:
    a, b = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
    assert math.isclose(cosine(a, b), 0.96)
    assert math.isnan(cosine(torch.zeros(2), a))


PAIRS = {"cosine": cosine, "dot": lambda a, b: float(a.double() @ b.double()),
         "euclidean": lambda a, b: float((a.double() - b.double()).norm())}  # fmt: skip


@pytest.mark.parametrize(("measure", "function"), PAIRS.items())
def test_a_table_is_every_pair(measure: str, function) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 7) + 100, torch.randn(3, 7) + 100
    made = table(a, b, measure)
    assert made.dtype == torch.float64
    expected = [[function(x, y) for y in b] for x in a]
    torch.testing.assert_close(made, torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=1e-12)


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(regard.RegardError, match="measure 'angle' is not known: it may be cosine, dot, euclidean"):
        table(torch.ones(1, 2), torch.ones(1, 2), "angle")


def test_the_two_banks_part(bank) -> None:
    river, money = bank
    made = across_texts([(river, "bank"), (money, "bank"), (river, "river")])
    assert made.shape == (7, 3, 3)
    torch.testing.assert_close(made.diagonal(dim1=1, dim2=2), torch.ones(7, 3, dtype=torch.float64))
    assert round(float(made[6, 0, 1]), 3) == 0.847
    assert made[0, 0, 1] > made[6, 0, 1]
    apart = across_texts([(river, "bank"), (money, "bank")], "euclidean")
    assert float(apart[0, 0, 1]) < 0.1 * float(apart[6, 0, 1])  # one learned embedding, at one place


def test_every_state_with_every_state(bank) -> None:
    river, money = bank
    made = across_layers((river, "bank"), (money, "bank"), "dot")
    assert made.shape == (7, 7)
    assert math.isclose(
        float(made[2, 5]), PAIRS["dot"](river.hidden_states[2][11], money.hidden_states[5][11]), rel_tol=1e-12
    )
    words = across_texts([(river, "bank"), (money, "bank")], "dot")
    torch.testing.assert_close(made.diagonal(), words[:, 0, 1])
    assert torch.equal(states_of(river, "bank"), torch.stack([state[11] for state in river.hidden_states]))
    assert torch.equal(states_of(river, 11), states_of(river, "bank"))


def test_cosines_and_places() -> None:
    vectors = {
        "bank": torch.tensor([1.0, 1.0, 0.0]),
        "river": torch.tensor([1.0, 0.0, 0.0]),
        "loan": torch.tensor([0.0, 2.0, 0.0]),
    }
    found = static_words(vectors, "bank", ["river", "quay", "loan"], "a file")
    assert [each.word for each in found.words] == ["bank", "river", "quay", "loan"]
    assert found.words[0].cosine == pytest.approx(1.0)
    assert found.words[1].cosine == pytest.approx(0.5**0.5)
    assert found.words[2].cosine is None
    assert found.words[2].place is None
    places = torch.tensor([each.place for each in found.words if each.place is not None])
    rows = torch.nn.functional.normalize(torch.stack([vectors["bank"], vectors["river"], vectors["loan"]]))
    torch.testing.assert_close(torch.cdist(places, places), torch.cdist(rows, rows))  # three points fit a plane
    assert sum(found.share) == pytest.approx(1.0)
    generator = torch.Generator().manual_seed(3)
    many = {word: torch.randn(9, generator=generator) for word in "abcdef"}
    told = static_words(many, "a", list("bcdef"), "a file").words
    far = {each.word: torch.dist(torch.tensor(each.place), torch.tensor(told[0].place)) for each in told[1:]}
    assert sorted(far, key=far.__getitem__) == [e.word for e in sorted(told[1:], key=lambda each: -each.cosine)]


def test_the_model_s_own_table(minilm, bank) -> None:
    references = [minilm.trace("river"), minilm.trace("money")]
    found = learned_words("bank", bank[0], references)
    assert torch.equal(found["bank"], bank[1].token_embeddings[11])
    told = static_words(found, "bank", ["river", "money"], "learned")
    expected = cosine(bank[0].token_embeddings[11], references[0].token_embeddings[1])
    assert told.words[1].cosine == pytest.approx(expected, abs=1e-6)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("bank 1 1 0\nriver 1 0 0.5\nmoney 0 1 0.25\n")
    see = ["see", RIVER, MONEY, "--word", "bank", "--compare", "river,money,loan"]
    calls = [
        [*see, "--static", "v.txt", "--json", "a.json", "--figure", "a.png"],
        [*see, "--static", "none.txt"],
        ["see", RIVER, "--word", "poem", "--compare", "river", "--static", "v.txt", "--json", "b.json"],
    ]
    file, missing, unknown = run_all_in_process(tmp_path, calls)
    assert file[0] == 0, file
    assert "“bank” as a static vector" in file[1]
    assert "has no vector" in file[1]
    assert "(3 numbers, from v.txt)" in file[1]
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert data["static"]["words"][1]["cosine"] == pytest.approx(1 / (2 * 1.25) ** 0.5)
    from importlib.resources import files

    jsonschema.validate(data, json.loads(files("regard.questions.see").joinpath("see.schema.json").read_text("utf-8")))
    for call, says in ((missing, "cannot be read"), (unknown, "no vector for 'poem'")):
        assert call[0] == 2
        assert says in call[2]
        assert call[2].count("\n") == 1
    assert not (tmp_path / "b.json").exists()
