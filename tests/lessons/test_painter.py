"""The painter of lesson 10: scenes, keys and edges of words, painting by its formula, and shares of known painters."""

import pytest
import torch
from torch import Tensor

import painter
import regard
from painter import Judge, Painted, Painter, Pictures

# Each "picture" of a digit is filled with a number that says which one it is.
MARKED = Pictures(torch.arange(30.0)[:, None, None].expand(30, 8, 8), torch.arange(10).repeat_interleave(3))
WORDS = painter.ids_of(torch.tensor([[7, 2], [4, 4]]), torch.tensor([[0, 3], [2, 1]]))


def test_patches_are_tiles_row_by_row() -> None:
    picture = torch.arange(36.0).view(1, 6, 6)
    cut = painter.patches(picture, 3)
    assert cut[0, [0, 1, 5]].tolist() == [[0, 1, 6, 7], [2, 3, 8, 9], [16, 17, 22, 23]]
    assert torch.equal(painter.joined(cut), picture)


def test_digits_stand_where_the_words_say() -> None:
    drawn = torch.Generator().manual_seed(5)
    digits, corners = painter.draw_scenes(200, drawn, different=True)
    assert (digits[:, 0] != digits[:, 1]).all()
    cells = painter.patches(painter.paste(MARKED, digits, corners, drawn), 2)  # (n, 4, 64)
    assert torch.equal(cells.amin(-1), cells.amax(-1))
    found = cells[..., 0]
    assert set(found.unique().tolist()) == {-1.0, *map(float, range(30))}  # all of a kind are drawn
    assert torch.equal(found.gather(1, corners).long() // 3, digits)
    assert ((found == -1).sum(1) == 2).all()
    said = [" ".join(painter.WORDS[word] for word in line) for line in WORDS]
    assert said[0] == "<start> a seven top left , a two bottom right"
    assert said[1] == "<start> a four bottom left , a four top right"
    swapped, phrases = painter.exchanged([2], [7]), painter.exchanged(*painter.PHRASES)
    assert WORDS[0, swapped].tolist() == painter.ids_of(torch.tensor([[2, 7]]), torch.tensor([[0, 3]]))[0].tolist()
    assert WORDS[0, phrases].tolist() == painter.ids_of(torch.tensor([[2, 7]]), torch.tensor([[3, 0]]))[0].tolist()


def test_batches_follow_from_their_step() -> None:
    words, pictures, noisy, time = painter.training_batch(MARKED, 4)
    assert torch.equal(noisy, painter.training_batch(MARKED, 4)[2])
    assert not torch.equal(words, painter.training_batch(MARKED, 5)[0])
    noise = (noisy - time[:, None, None] * pictures) / (1 - time)[:, None, None]
    assert abs(float(noise.std()) - 1) < 0.05


@pytest.mark.parametrize("values", ["plain", "contextual"])
def test_keys_are_exchanged_edges_cut_and_values_stay(values: str) -> None:
    torch.manual_seed(0)
    model, first = Painter(values), ("painter.0.cross", 0)
    noisy, time, keys = torch.randn(2, 16, 16), torch.rand(2), painter.exchanged([2], [7])
    calls = []
    with torch.no_grad():
        for change in ({}, {"keys": keys}, {"may": painter.all_but(2)}):
            with regard.record() as recorded:
                model(noisy, time, WORDS, **change)
            calls.append(recorded[first])
        plain_values = model.layers[0].cross.value(model.embedding(WORDS)).unflatten(-1, (2, 32)).transpose(1, 2)
    weights = calls[0].weights.dense()
    torch.testing.assert_close(calls[1].weights.dense(), weights[..., keys])
    assert torch.equal(calls[1].value, calls[0].value)
    assert torch.allclose(calls[0].value, plain_values, atol=1e-5) == (values == "plain")
    assert calls[2].weights.dense()[..., 2].abs().max() == 0


def test_who_expects_one_picture_paints_it_along_a_straight_line() -> None:
    pictures, noise, times = torch.randn(2, 16, 16), torch.randn(2, 16, 16), []
    model = Painter()

    def knows(noisy: Tensor, time: Tensor, *given: object) -> Tensor:
        times.append(float(time[0]))
        model(noisy, time, *given)
        return pictures

    painted = painter.paint(knows, WORDS, noise, steps=5)
    assert times == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    torch.testing.assert_close(painted.pictures, pictures)
    assert painted.weights.shape == (5, 3, 2, 2, 16, 10)
    torch.testing.assert_close(painted.heat.sum(-1), torch.ones(2, 16))


@pytest.mark.parametrize("through_edges", [True, False])
@pytest.mark.parametrize("pointing", [True, False])
def test_shares_of_painters_that_are_known(
    monkeypatch: pytest.MonkeyPatch, through_edges: bool, pointing: bool
) -> None:
    """They paste held-out digits, each where the key of its word is; their weights are given."""
    known, held = painter.read_digits()
    assert (len(known.labels), len(held.labels)) == (1200, 597)
    seen = {each.numpy().tobytes() for each in known.pixels}
    assert not any(each.numpy().tobytes() in seen for each in held.pixels)
    numbers = torch.arange(painter.LENGTH)

    def paint(model: object, words: Tensor, noise: Tensor, keys: Tensor = numbers, may: Tensor = numbers >= 0):
        digits, at = words[:, painter.DIGIT_PLACES] - painter.WORDS.index("zero"), painter.DIGIT_PLACES
        corners = torch.stack([2 * (words[:, n + 1] - 3) + words[:, n + 2] - 5 for n in at], -1)
        if through_edges and keys[2] != 2:
            corners = corners.flip(1)
        pictures = painter.paste(held, digits, corners, torch.Generator().manual_seed(0))
        weights = torch.full((len(words), 16, painter.LENGTH), 0.01)
        for slot, n in enumerate(at):
            cell = corners[:, slot] if pointing else (corners[:, slot] + 1) % 4
            weights[..., n] += (painter.corner_of_patches() == cell[:, None]).float()
            if through_edges and not may[n]:
                cells = painter.patches(pictures, 2)
                cells[torch.arange(len(words)), corners[:, slot]] = -1
                pictures = painter.joined(cells)
        return Painted(pictures, pictures[None], weights[None, None, :, None])

    monkeypatch.setattr(painter, "paint", paint)
    right, most, inside, moved, stay, phrases, cut = painter.measure(None, Judge(held), scenes=101).values()
    assert (right, most) == (1, pointing)
    assert inside == pytest.approx(4 * (1.01 if pointing else 0.01) / 4.16)
    assert (moved, stay, phrases) == ((1, 0, 1) if through_edges else (0, 1, 0))
    assert cut < 0.3 if through_edges else cut == 1
