"""Random heat of a text's words, as a pipeline of two layers and three steps leaves it."""

import torch
from PIL import Image

from regard.diffusion.pipeline import PaintedText
from regard.diffusion.prompt import HeatLayer, Prompt, PromptHeat
from regard.text.tokens import Token
from tests.support import in_text

WORDS = ("a", "cat", "on", "a", "mat")
LENGTH = 11  # keys, padding with them


def prompt() -> Prompt:
    """Make "a cat on a mat" between a start and an end token, "mat" of two tokens."""
    tokens, at = [Token(0, "<s>", 0, 0, None, True)], 0
    for n, word in enumerate(WORDS):
        pieces = [word] if word != "mat" else ["ma", "##t"]
        for piece in pieces:
            size = len(piece.removeprefix("##"))
            tokens.append(Token(n + 1, piece, at, at + size, n, False))
            at += size
        at += 1
    tokens.append(Token(9, "</s>", at - 1, at - 1, None, True))
    return Prompt(" ".join(WORDS), tuple(in_text(tokens)), tuple(range(len(tokens))), LENGTH)


def heat(seed: int = 0, heads: int = 2, joint: bool = False) -> PromptHeat:
    """Draw weights of two pictures, in grids of 5 × 7 and 3 × 4; joint: words get a part of them alone."""
    noise = torch.Generator().manual_seed(seed)
    found = PromptHeat(prompt(), [HeatLayer("fine", 2, (5, 7)), HeatLayer("coarse", 2, (3, 4))])
    kept = len(found.prompt.tokens) + 1
    for _ in range(3):
        drawn = [torch.randn(2, heads, *each.grid, kept + joint, generator=noise) for each in found.layers]
        found.weights.append([(3 * each).softmax(-1)[..., :kept] for each in drawn])
    return found


def painted(seed: int = 0, joint: bool = False) -> PaintedText:
    """Make grey pictures with such heat."""
    return PaintedText((Image.new("RGB", (28, 20), "grey"),) * 2, heat(seed, joint=joint))
