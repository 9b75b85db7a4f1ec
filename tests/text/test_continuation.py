"""Tokens that were written after a text, with their characters."""

from typing import Any

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from regard.text.continuation import begun, continued
from regard.text.tokens import encode, encoded_ids


@pytest.fixture(scope="module")
def by_bytes() -> Any:
    """A tokenizer with a token for each byte."""
    vocabulary = {letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.add_special_tokens({"eos_token": "<end>"})
    return fast


def test_tokens_that_share_a_character(by_bytes) -> None:
    more = by_bytes("é 🙂x")["input_ids"]
    grown = continued(by_bytes, encode(by_bytes, "ab"), [*more, by_bytes.eos_token_id])
    assert grown.text == "abé 🙂x"
    spans = [(t.start, t.end) for t in grown.tokens]
    assert spans == [(0, 1), (1, 2), (2, 3), (2, 3), (3, 4), *[(4, 5)] * 4, (5, 6), (6, 6)]
    assert grown.tokens[-1].special
    assert [t.word for t in grown.tokens[:4]] == [0, 0, 0, 0]
    broken = continued(by_bytes, encode(by_bytes, "a"), more[:1])
    assert broken.text == "a\ufffd"
    assert begun(by_bytes, by_bytes.eos_token_id).text == ""
    assert continued(None, encoded_ids([3]), [5, 8]).text == "3 5 8"
