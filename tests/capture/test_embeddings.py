"""Embedding parts are the model's own tables at the text's ids, scaled as it scales them, and add up to its input."""

import pytest
import torch
import transformers

from regard.capture.embeddings import EmbeddingParts, most_positions_of_model, record_embeddings
from regard.capture.state import ModuleIndex
from tests.support.attention_outputs import make_model

IDS = torch.tensor([[5, 17, 31, 8, 44], [9, 2, 60, 41, 3]])


def test_bert_adds_three_tables() -> None:
    model = make_model("bert")
    with torch.no_grad(), record_embeddings(ModuleIndex(model), [IDS]) as groups:
        model(IDS)
    (parts,) = groups
    tables = model.embeddings
    assert torch.equal(parts.token_embeddings, tables.word_embeddings.weight[IDS])
    assert torch.equal(parts.position_embeddings[0], tables.position_embeddings.weight[:5])
    assert torch.equal(parts.segment[1], tables.token_type_embeddings.weight[torch.zeros(5, dtype=torch.long)])
    assert parts.difference() < 1e-6
    assert parts.scales == {}


def test_a_factor_is_found() -> None:
    model = make_model("marian", scale_embedding=True)  # times the square root of 24
    with torch.no_grad(), record_embeddings(ModuleIndex(model), [IDS, IDS[:, :3]]) as groups:
        model(input_ids=IDS, decoder_input_ids=IDS[:, :3])
    assert [group.token_embeddings.shape[1] for group in groups] == [5, 3]
    for group in groups:
        rows = model.shared.weight[IDS[:, : group.token_embeddings.shape[1]]]
        torch.testing.assert_close(group.token_embeddings, rows * 24**0.5)
        assert group.difference() < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_factor_is_found_in_half_precision(dtype: torch.dtype) -> None:
    model = make_model("marian", scale_embedding=True).to(dtype)
    with torch.no_grad(), record_embeddings(ModuleIndex(model), [IDS, IDS[:, :3]]) as groups:
        model(input_ids=IDS, decoder_input_ids=IDS[:, :3])
    for group in groups:
        assert group.scales["token_embeddings"] == pytest.approx(24**0.5, rel=4 * torch.finfo(dtype).eps)
        assert group.difference() <= 4 * torch.finfo(dtype).eps * float(group.input.abs().max())


def test_parts_that_do_not_fit_are_not_scaled() -> None:
    generator = torch.Generator().manual_seed(1)
    learned, positional, other = (torch.randn(1, 7, 5, generator=generator) for _ in range(3))
    parts = EmbeddingParts(learned, positional, input=other)
    parts.scale()
    assert parts.scales == {}
    assert torch.equal(parts.token_embeddings, learned)
    parts = EmbeddingParts(learned, positional, input=3 * learned - 0.5 * positional)
    parts.scale()
    assert parts.scales == pytest.approx({"token_embeddings": 3.0, "position_embeddings": -0.5})
    assert parts.difference() < 1e-5


def test_position_limit() -> None:
    assert most_positions_of_model(make_model("gpt2")) == 31
    config = transformers.RobertaConfig(
        vocab_size=97, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, max_position_embeddings=33
    )
    assert most_positions_of_model(transformers.RobertaModel(config)) == 31  # two rows are for padding and before it
