"""A long text that a small random model wrote."""

import pytest
import torch

import regard
from regard.generation.generator import Generated


@pytest.fixture(scope="module")
def done() -> Generated:
    from regard.text import tokenizers

    torch.manual_seed(3)
    words = tokenizers.words(["a bank of a river by the town"], frame="end")
    sizes = regard.TransformerConfig.nanogpt(len(words), d_model=32, layers=2, heads=2, length=256)
    return regard.load(regard.Transformer(sizes), tokenizer=words).generate("a bank of", max_new_tokens=150)
