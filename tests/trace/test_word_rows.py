import torch

from regard.trace.word_rows import gets, gives, special_share, vector


def test_a_word_of_several_tokens(minilm) -> None:
    trace = minilm.trace("two withdrawals there")
    (word,) = trace.word("withdrawals")
    assert word.tokens == (2, 3)
    dense = trace.attention[1].dense()
    torch.testing.assert_close(vector(trace.last_hidden_state, word), trace.last_hidden_state[2:4].mean(0))
    torch.testing.assert_close(gives(trace.attention[1], word), dense[:, 2:4].mean(1))
    torch.testing.assert_close(gets(trace.attention[1], word), dense[:, :, 2] + dense[:, :, 3])


def test_the_share_of_special_tokens(bank) -> None:
    trace = bank[0]
    row = trace.attention[0][:, 11]
    torch.testing.assert_close(special_share(row, trace.tokens), row[:, 0] + row[:, 13])
