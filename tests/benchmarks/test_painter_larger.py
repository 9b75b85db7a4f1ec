"""The harder scene: lines say what is in their pictures, and what is held out is in none that is learned from."""

import torch

from benchmarks.painter_larger import CELL, LENGTH, WORDS, LargerScenes, draw, held_out, pictured, spelled
from regard.nn.painter import patches
from regard.train.scenes import PAPER, read_digits


def test_lines_say_what_is_pictured() -> None:
    drawn = torch.Generator().manual_seed(3)
    digits, cells, there = draw(211, drawn)
    source = read_digits()[0]
    cut = patches(pictured(source, digits, cells, there, drawn), 3)
    lines = spelled(digits, cells, there)
    named = zip(source.pictures.flatten(1).tolist(), source.labels.tolist(), strict=True)
    kinds = {tuple(picture): label for picture, label in named}
    assert cut.shape == (211, 9, CELL * CELL)
    for line, boxes in zip(lines, cut, strict=True):
        words = [WORDS[n] for n in line.tolist() if WORDS[n] != "<nothing>"]
        said = {}
        for at in range(0, len(words), 5):
            _, _, digit, row, column = words[at : at + 5]
            place = 3 * ("top", "middle", "bottom").index(row) + ("left", "centre", "right").index(column)
            said[place] = WORDS.index(digit) - WORDS.index("zero")
        assert {n: kinds[tuple(box.tolist())] for n, box in enumerate(boxes) if bool((box != PAPER).any())} == said
    assert lines.shape == (211, LENGTH)
    assert set(there.sum(1).tolist()) == {1, 2, 3}


def test_what_is_held_out_is_never_learned_from() -> None:
    for n in range(5):
        drawn = torch.Generator().manual_seed(n)
        digits, cells, _ = draw(997, drawn)
        assert not held_out(digits, cells).any()
        assert len(set(zip(digits.flatten().tolist(), cells.flatten().tolist(), strict=True))) == 80
        digits, cells, there = draw(97, drawn, 3, unseen=True)
        assert held_out(digits, cells).all()
        assert there.all()
    first, place = LargerScenes(batch=7, seed=5).batch((0, 11))
    again, _ = LargerScenes(batch=7, seed=5).batch((0, 11))
    assert place == (0, 12)
    assert torch.equal(first.noisy, again.noisy)
