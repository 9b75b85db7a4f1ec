import re

import pytest
import torch

from regard.errors import RegardError
from regard.trace.trace import gets, gives, special_share, vector
from tests.support import RIVER


def test_a_word_of_several_tokens(minilm) -> None:
    trace = minilm.trace("two withdrawals there")
    (word,) = trace.word("withdrawals")
    assert word.tokens == (2, 3)
    dense = trace.attention[1].dense()
    torch.testing.assert_close(vector(trace.contextual, word), trace.contextual[2:4].mean(0))
    torch.testing.assert_close(gives(trace.attention[1], word), dense[:, 2:4].mean(1))
    torch.testing.assert_close(gets(trace.attention[1], word), dense[:, :, 2] + dense[:, :, 3])


def test_the_share_of_special_tokens(bank) -> None:
    trace = bank[0]
    row = trace.attention[0][:, 11]
    torch.testing.assert_close(special_share(row, trace.tokens), row[:, 0] + row[:, 13])


def test_a_trace_says_what_it_is(bank) -> None:
    assert repr(bank[0]) == f"Trace({RIVER!r}, 14 tokens, 6 layers, all-MiniLM-L6-v2)"
    assert not any(t.requires_grad for t in bank[0].hidden_states)


def test_a_layer_that_there_is_not(bank) -> None:
    trace = bank[0]
    for number in (6, 99, -7):
        named = re.escape(f"attention[{number}]: there is no such layer; there are 6 (-6 to 5)")
        with pytest.raises(IndexError, match=named) as caught:
            trace.attention[number]
        assert isinstance(caught.value, RegardError)
    assert trace.attention[-1] is trace.attention[5]
    assert list(trace.attention) == [trace.attention[n] for n in range(6)]
    assert trace.attention[1:3] == (trace.attention[1], trace.attention[2])
    assert isinstance(trace.attention, tuple)


def test_the_sides_of_a_pair(pair, trace) -> None:
    assert pair.sides == (pair.encoder, pair.decoder)
    assert trace.sides == (trace,)
