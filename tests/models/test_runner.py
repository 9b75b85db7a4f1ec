"""Texts are put into batches of like lengths: each once, and no batch larger than may be, unless padding is read."""

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard.capture.session import Session
from regard.models.runner import BATCH_TOKENS, batches_of_similar_length
from tests.support.attention_outputs import make_model

TEXTS = [[5, 17, 31, 8, 44, 90, 2], [5, 17, 31, 8], [9, 8, 7, 6, 5, 4, 3], [5, 3, 5]]


@given(st.lists(st.integers(1, 3 * BATCH_TOKENS // 2), max_size=40), st.none() | st.integers(1, 7))
def test_every_text_is_in_one_batch_that_may_be(lengths: list[int], most: int | None) -> None:
    found = list(batches_of_similar_length(lengths, most))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        padded = max(lengths[n] for n in batch) * len(batch)
        assert padded <= BATCH_TOKENS or len(batch) == 1  # a text alone may be longer
        assert most is None or len(batch) <= most
    ordered = [lengths[n] for batch in found for n in batch]
    assert ordered == sorted(lengths)


def test_short_texts_go_together() -> None:
    assert list(batches_of_similar_length([5, 3, 5])) == [[1, 0, 2]]
    assert list(batches_of_similar_length([5, 3, 5], 1)) == [[1], [0], [2]]
    assert list(batches_of_similar_length([BATCH_TOKENS, 1])) == [[1], [0]]


def mobilebert() -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"embedding_size": 16, "intermediate_size": 37, "intra_bottleneck_size": 16, "max_position_embeddings": 31}
    model = transformers.MobileBertModel(transformers.MobileBertConfig(**sizes, **more)).eval()
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[0].normal_()  # of padding, as in a checkpoint that was trained so
    return model


def mixing(family: str) -> Any:
    """A model that adds the embedding of the next token to each."""
    model = make_model(family)
    table = model.get_input_embeddings()
    torch.nn.init.normal_(table.weight)  # that of padding is not 0
    table.register_forward_hook(
        lambda _module, _ids, found: found + torch.nn.functional.pad(found[:, 1:], (0, 0, 0, 1))
    )
    return model


@pytest.mark.parametrize(
    ("make", "passes"),
    [
        (mobilebert, [4, 1, 1, 1, 2]),
        (lambda: mixing("bert"), [4, 1, 1, 1, 2]),
        (lambda: mixing("marian"), [4, 1, 1, 1, 1, 1]),
        (lambda: make_model("bert"), [4, 1]),
        (lambda: make_model("llama"), [4, 1]),
    ],
    ids=["mobilebert", "mixing bert", "mixing marian", "bert", "llama"],
)
def test_a_text_in_a_batch_is_what_it_is_alone(make: Any, passes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    model, run, sizes = regard.load(make()), Session.run, list[int]()

    def counted(self: Session, sources: Any, *rest: Any, **options: Any) -> Any:
        sizes.append(len(sources))
        return run(self, sources, *rest, **options)

    monkeypatch.setattr(Session, "run", counted)
    more: Any = {"target_ids": [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2]]} if model.pairs else {}
    together = model.trace(ids=TEXTS, **more)
    assert sorted(sizes[2:]) == passes[2:]
    assert sizes[:2] == passes[:2]
    sizes.clear()
    model.trace(ids=TEXTS, **more)
    assert sum(sizes) == len(TEXTS)  # tried once
    for n, trace in enumerate(together):
        alone = model.trace(ids=TEXTS[n], **{name: each[n] for name, each in more.items()})
        for ours, theirs in zip(trace.sides, alone.sides, strict=True):
            torch.testing.assert_close(ours.last_hidden_state, theirs.last_hidden_state, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(ours.attention[0].dense(), theirs.attention[0].dense(), atol=1e-6, rtol=0)
