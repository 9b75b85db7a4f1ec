import pytest
import torch

from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.head_map import key_heads_of_queries, of_heads, one_head
from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.errors import RegardError

H, L = 6, 5
torch.manual_seed(0)
RULES = [
    ScoreRule(1.0),
    ScoreRule(1.0, bias=torch.randn(1, H, L, L), sinks=torch.randn(H)),
    ScoreRule(1.0, bias=torch.randn(1, 1, L, L), mask=masks.dense(torch.rand(1, H, L, L) > 0.3)),
    ScoreRule(1.0, mask=Mask(high=0, removed=(Edges((1, H, L, L), heads=(1, 4), keys=(0,)),))),
    ScoreRule(1.0, mask=Mask(removed=(Edges((1, H, L, L), queries=(2,), keys=(0,)),))),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("groups", [1, 3, 6])
def test_chosen_heads_have_their_weights(rule: ScoreRule, groups: int) -> None:
    weights = AttentionMap(torch.randn(1, H, L, 4), torch.randn(1, groups, L, 4), rule, offset=0, ndim=3)
    for heads in ([0], [1, 4], [2, 3, 4], [0, 1, 2, 3, 4, 5], [5, 0]):
        few = of_heads(weights, heads, 2)
        assert few.shape == (len(heads), L, L)
        assert few.offset == 0
        torch.testing.assert_close(few.dense(), weights.dense()[heads])
        torch.testing.assert_close(few.sink_share, weights.sink_share[heads])
    torch.testing.assert_close(one_head(weights, 4).dense(), weights.dense()[4:5])
    with pytest.raises(IndexError, match="head 6 is out of range: the map has heads 0 to 5"):
        one_head(weights, 6)


def test_key_heads_are_as_few_as_equal_runs_can_share() -> None:
    assert key_heads_of_queries([0, 1, 2, 3], 6, 3) == [0, 1]
    assert key_heads_of_queries([0, 2], 6, 3) == [0, 1]
    assert key_heads_of_queries([0, 1, 2], 6, 3) == [0, 0, 1]
    assert key_heads_of_queries([4], 6, 3) == [2]


def test_all_heads_are_the_map_itself_and_one_that_is_not_there_is_named() -> None:
    weights = AttentionMap(torch.randn(1, H, L, 4), torch.randn(1, H, L, 4), ScoreRule(1.0), ndim=3)
    assert of_heads(weights, None, 2) is weights
    assert of_heads(weights, range(H), 2) is weights
    with pytest.raises(RegardError, match="head 6 does not exist: layer 2 has heads 0 to 5"):
        of_heads(weights, [0, 6], 2)
