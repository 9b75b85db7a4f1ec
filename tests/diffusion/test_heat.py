import pytest
import torch

from regard.errors import RegardError
from tests.support.prompt_heat import heat


def test_a_words_heat_is_the_sum_of_its_tokens_weights() -> None:
    found = heat()
    assert found.grid == (5, 7)
    own = found.of("mat", step=1, layer=1, head=0)
    assert own.shape == (2, 3, 4)
    torch.testing.assert_close(own, found.weights[1][1][:, 0][..., [5, 6]].sum(-1))
    torch.testing.assert_close(found.of("mat", step=-1, layer=0), found.weights[2][0][..., [5, 6]].sum(-1).mean(1))


def test_a_mean_lays_coarse_places_over_the_fine_ones_that_they_cover() -> None:
    found = heat()
    token, by_hand = 2, torch.zeros(2, 5, 7, dtype=torch.float64)
    for step in found.weights:
        for layer in step:
            _, _, rows, columns, _ = layer.shape
            for row in range(5):
                for column in range(7):
                    by_hand[:, row, column] += (
                        layer[:, :, row * rows // 5, column * columns // 7, token].double().mean(1) / 6
                    )
    torch.testing.assert_close(found.of("cat").double(), by_hand, atol=1e-7, rtol=1e-6)
    everything = found.mean(range(len(found.prompt.tokens) + 1))
    torch.testing.assert_close(everything, torch.ones(2, 5, 7))


def test_words_and_places_that_are_not_there_are_named() -> None:
    found, thin = heat(), heat(heads=1)
    assert found.word("a (2)").tokens == (4,)
    assert found.word("</s>").special
    for ask, says in (
        (lambda: found.of("a"), r"word 'a' occurs 2 times: needs one of 'a \(1\)', 'a \(2\)'"),
        (lambda: found.of("dog"), "word 'dog' is not in the text"),
        (lambda: found.of("cat", step=3), "step 3 is out of range: there are steps 0 to 2"),
        (lambda: found.of("cat", layer=2), "layer 2 is out of range"),
        (lambda: found.of("cat", layer=0, head=2), r"head 2 is out of range: layer 0 \(fine\) has heads 0 to 1"),
        (lambda: thin.of("cat", layer=0, head=0), "the mean of heads alone was kept, needs heads=True"),
    ):
        with pytest.raises(RegardError, match=says):
            ask()
    torch.testing.assert_close(thin.of("cat", layer=0).shape, found.of("cat", layer=0).shape)
