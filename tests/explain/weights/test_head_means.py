"""Means of head scores over several texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.weights.alignment import align
from regard.explain.weights.head_means import (
    REPEATED,
    HeadMeans,
    _bray_curtis_similarity,
    _draw_cycle,
    content_or_position,
    cross_head_scores,
    mean_scores,
    random_ids,
    repeated_tokens,
    special_around,
)
from regard.explain.weights.head_scores import NAMES, head_scores
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.train.data import Batch
from regard.train.loop import optimiser_of, train
from regard.train.run_folder import TrainingState
from regard.train.settings import Settings
from tests.support.own_models import translator

PAIRS = [("the white table stands", "la table blanche reste"), ("the table", "la table")]


def test_a_text_counts_by_its_queries(minilm: Any) -> None:
    texts = ["The cat saw the cat and the dog saw the dog.", "A short one."]
    each = [head_scores(trace) for trace in minilm.trace(texts)]
    found = mean_scores(each)
    assert tuple(found.scores) == NAMES
    n, m = each[0].queries, each[1].queries
    expected = (each[0].previous * n + each[1].previous * m) / (n + m)
    np.testing.assert_allclose(found.scores["previous"], expected, rtol=1e-12)
    assert each[1].inductions == 0  # so that the mean is that of the other text
    np.testing.assert_allclose(found.scores["induction"], each[0].induction, rtol=1e-12)
    assert found.counts == {
        "queries": n + m, "nexts": n + m, "duplicates": each[0].duplicates, "inductions": each[0].inductions
    }  # fmt: skip
    assert (found.count("previous"), found.count("induction")) == (n + m, each[0].inductions)
    assert found.rows()[13]["layer"] == 1
    assert found.rows()[13]["previous"] == found.scores["previous"][1, 1]


def test_no_query_has_such_a_key(minilm: Any) -> None:
    found = mean_scores([head_scores(minilm.trace("A short one."))])
    assert np.isnan(found.scores["induction"]).all()
    assert found.best("induction") == []


def test_best_names_layers_of_the_model() -> None:
    scores = {"previous": np.array([[0.1, 0.9], [0.3, np.nan]])}
    found = HeadMeans(scores, {"queries": 1}, (4, 7))
    assert found.best("previous") == [(4, 1, 0.9), (7, 0, 0.3), (4, 0, 0.1)]
    assert found.best("previous", 1, by=-scores["previous"]) == [(4, 0, 0.1)]


def test_what_cannot_be_averaged_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="got no scores, expected those of at least one text"):
        mean_scores([])
    traces = [minilm.trace("A short one.", layers=layers) for layers in ([0], [1])]
    with pytest.raises(RegardError, match="the traces have different layers"):
        mean_scores([head_scores(trace) for trace in traces])


@pytest.fixture(scope="module")
def pairs() -> list[Any]:
    model = translator(*(text for pair in PAIRS for text in pair))
    return model.trace([text for text, _ in PAIRS], target=[target for _, target in PAIRS])


def test_scores_are_the_means_that_they_say(pairs: list[Any]) -> None:
    found = cross_head_scores(pairs)
    rows: dict[str, list[float]] = {"written": [], "read": [], "successor": [], "special": []}
    for pair in pairs:
        weights = pair.decoder.cross[1][2].double()
        special = [n for n, token in enumerate(pair.encoder.tokens) if token.special]
        for each in align(pair).tokens:
            if each.written is None or pair.decoder.tokens[each.token].special:
                continue
            place = each.written.top[0].token
            rows["written"].append(float(weights[each.token - 1, place]))
            rows["read"].append(float(weights[each.token, place]))
            rows["special"].append(float(weights[each.token, special].sum()))
            if not pair.encoder.tokens[place + 1].special:
                rows["successor"].append(float(weights[each.token, place + 1]))
    assert found.counts == {"queries": len(rows["written"]), "successors": len(rows["successor"])}
    assert len(rows["written"]) == 6  # 4 and 2 words
    for name, values in rows.items():
        assert found.scores[name][1, 2] == pytest.approx(np.mean(values), abs=1e-9), name


def test_nothing_is_refused() -> None:
    with pytest.raises(RegardError, match="got no trace"):
        cross_head_scores([])


def test_a_translators_heads(opus_mt: Any) -> None:
    """Upper layers look at the source of what they write, lower ones at that of what they have read."""
    texts = ["The old man walked along the river bank.", "The red car is very fast."]
    found = cross_head_scores([opus_mt.generate(text, max_new_tokens=30).trace for text in texts])
    (written, _, most), (read, _, _) = found.best("written", 1)[0], found.best("read", 1)[0]
    assert written > read
    assert most > 0.5


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
    [(1, 2, "got 1 tokens 2 times"), (300, 2, "got 602 with special tokens, .* takes at most 512")],
)
def test_what_does_not_fit_is_refused(minilm: Any, length: int, repeats: int, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        random_ids(minilm, length, repeats)


TEXT = "The old man walked slowly along the river bank while the children played near the water."


def test_alike() -> None:
    one = torch.tensor([[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]], [[0.2, 0.2, 0.2]], [[0.0, 0.0, 0.0]]]).double()
    other = torch.tensor([[[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]], [[0.2, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]).double()
    found = _bray_curtis_similarity(one, other)
    torch.testing.assert_close(found[:3], torch.tensor([1.0, 0.0, 0.5]).double())
    assert bool(found[3].isnan())


def test_nothing_stays_where_it_was() -> None:
    for count in (2, 3, 17):
        moved = _draw_cycle(count, torch.Generator().manual_seed(count))
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
    with pytest.raises(RegardError, match="a text has 3 tokens, expected 8 or more"):
        content_or_position(minilm, ["The river bank"])
    with pytest.raises(RegardError, match="got 0 texts, 4 exchanges, expected 1 or more"):
        content_or_position(minilm, [])
