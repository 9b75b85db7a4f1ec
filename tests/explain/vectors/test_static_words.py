"""One static point beside contextual ones."""

import json
from pathlib import Path

import jsonschema
import pytest
import torch

from regard.explain.vectors.similarity import cosine
from regard.explain.vectors.static_words import learned_words, static_words
from tests.support import MONEY, RIVER, run_all_in_process


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
