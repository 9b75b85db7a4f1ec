"""Repeated random tokens are drawn as said, and tokens that are exchanged tell places from contents."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.weights.head_scores import head_scores
from regard.explain.weights.head_tests import (
    REPEATED,
    _alike,
    _cycle_of_exchanged_tokens,
    content_or_position,
    random_ids,
    repeated_tokens,
    special_around,
)
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.train.checkpoint import TrainingState
from regard.train.data import Batch
from regard.train.loop import optimiser_of, train
from regard.train.settings import Settings


def test_it_is_the_mean_over_the_texts(minilm: Any) -> None:
    found = repeated_tokens(minilm, length=6, texts=2, seed=3)
    assert tuple(found.scores) == REPEATED
    each = [head_scores(minilm.trace(ids=random_ids(minilm, 6, 2, seed=n))) for n in (3, 4)]
    for name in REPEATED:
        np.testing.assert_allclose(found.scores[name], (getattr(each[0], name) + getattr(each[1], name)) / 2)
    assert found.counts["inductions"] == 2 * 6  # every token of the second half
    assert found.best("previous", 1)[0][:2] == (0, 2)  # the default model's own head for it


def test_a_trained_decoder_has_an_induction_head(smollm2: Any) -> None:
    found = repeated_tokens(smollm2, length=20, texts=2)
    assert found.best("induction", 1)[0][2] > 0.7
    assert np.median(found.scores["induction"]) < 0.1


class Repeats:
    """Rows of random symbols that come again: only who looks behind the last time knows what is next."""

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        drawn = torch.Generator().manual_seed(place[1])
        period = int(torch.randint(5, 12, (1,), generator=drawn))
        own = torch.stack([torch.randperm(40, generator=drawn)[:period] for _ in range(32)])
        rows = own.repeat(1, -(-25 // period))[:, :25]
        return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous(), None, None), (0, place[1] + 1)

    def validation(self, most: int | None = None) -> Iterator[Batch]:
        yield self.batch((0, 10**6))[0]


@pytest.mark.nightly  # a minute, and tests/train/test_repeated.py shows it by the command
def test_induction_forms_in_two_layers_and_not_in_one() -> None:
    """Olsson et al. 2022: a head of the second layer, behind one of the first that looks at the token before."""
    most = {}
    for layers in (1, 2):
        torch.manual_seed(0)
        sizes = TransformerConfig(vocabulary=40, layers=layers, d_model=64, d_hidden=64, positions="alibi")
        model = Transformer(sizes)
        settings = Settings(
            steps=700, batch=32, rate=3e-3, least_rate=3e-4, warmup=50, decay=0.0, beta2=0.98, evaluate_every=0,
            save_every=0,
        )  # fmt: skip
        optimiser = optimiser_of(model, settings)
        train(model, Repeats(), optimiser, settings, TrainingState(), save=lambda _: None, on_log=lambda _: None)
        found = repeated_tokens(regard.load(model.eval()), length=10)
        (layer, _, most[layers]), *_ = found.best("induction")
        if layers == 2:
            assert layer == 1
            assert found.best("previous")[0][0] == 0
    assert most[2] > 0.5
    assert most[1] < 0.2


def test_tokens_between_the_models_special_ones(minilm: Any) -> None:
    ids = random_ids(minilm, 7, 3, seed=5)
    assert (ids[:1], ids[-1:]) == special_around(minilm) == ([101], [102])
    own = ids[1:-1]
    assert own[:7] == own[7:14] == own[14:]
    assert len(set(own)) == 7
    assert all(minilm.tokenizer.convert_ids_to_tokens(number).strip("#").isalpha() for number in own)
    assert random_ids(minilm, 7, 3, seed=5) == ids != random_ids(minilm, 7, 3, seed=6)


def test_a_model_without_a_tokenizer() -> None:
    model = regard.load(
        regard.Transformer(regard.TransformerConfig(vocabulary=11, length=32, layers=1, heads=1, d_model=4))
    )
    assert special_around(model) == ([], [])
    assert sorted(random_ids(model, 11)) == list(range(11))


@pytest.mark.parametrize(
    ("length", "repeats", "said"),
    [(1, 2, "given 1 tokens, 2 times"), (300, 2, "given 602 with special ones, .* takes 512 at most")],
)
def test_what_does_not_fit_is_refused(minilm: Any, length: int, repeats: int, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        random_ids(minilm, length, repeats)


TEXT = "The old man walked slowly along the river bank while the children played near the water."


def test_alike() -> None:
    one = torch.tensor([[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]], [[0.2, 0.2, 0.2]], [[0.0, 0.0, 0.0]]]).double()
    other = torch.tensor([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[0.2, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]).double()
    found = _alike(one, other)
    torch.testing.assert_close(found[:3], torch.tensor([1.0, 0.0, 0.5]).double())
    assert bool(found[3].isnan())


def test_nothing_stays_where_it_was() -> None:
    for count in (2, 3, 17):
        moved = _cycle_of_exchanged_tokens(count, torch.Generator().manual_seed(count))
        assert sorted(moved.tolist()) == list(range(count))
        assert not bool((moved == torch.arange(count)).any())


def test_a_model_that_knows_no_places_follows_content_alone() -> None:
    """Without positions a key's score is the same wherever it stands: of one layer, content is 1 exactly."""
    torch.manual_seed(3)
    own = regard.Transformer(
        regard.TransformerConfig(vocabulary=31, kind="encoder", layers=1, heads=2, d_model=8, positions="none")
    )
    with torch.no_grad():
        for parameter in own.parameters():
            parameter.mul_(4)  # weights that are far from even
    model = regard.load(own)
    found = content_or_position(model, [random_ids(model, 23)], exchanges=3)
    np.testing.assert_allclose(found.scores["content"], 1, atol=1e-5)
    assert float(found.scores["position"].max()) < 0.95
    assert found.counts == {"queries": 5}


def test_a_head_of_the_default_model_that_looks_at_the_token_before(minilm: Any) -> None:
    found = content_or_position(minilm, [TEXT])
    assert found.best("position", 1, by=found.scores["position"] - found.scores["content"])[0][:2] == (0, 2)
    for scores in found.scores.values():
        assert float(np.nanmin(scores)) >= 0
        assert float(np.nanmax(scores)) <= 1 + 1e-6


def test_what_cannot_be_compared_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="a text has 3 tokens, needs 8 or more"):
        content_or_position(minilm, ["The river bank"])
    with pytest.raises(RegardError, match="given 0 texts, 4 exchanges, needs 1 or more"):
        content_or_position(minilm, [])
