"""Paint: from noise to a picture in a few steps, with what every patch attends to among the words on the way.

Euler's method along the flow: a step of 1 / steps towards the picture that the painter expects, from where it is.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.recording import record
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.nn.painter import Painter

STEPS = 20


@dataclass(frozen=True, eq=False)
class Painted:
    """Pictures that were painted; what was expected at each step; and the weights of patches to words.

    pictures: -1 is paper, 1 is ink. expected: (steps, n, R, R). weights: (steps, N layers, n, H heads, P patches, L),
    each row sums to 1.
    """

    pictures: Float[Tensor, "n R R"]
    expected: Float[Tensor, "steps n R R"]
    weights: Float[Tensor, "steps N n H P L"]

    @property
    def heat(self) -> Float[Tensor, "n P L"]:
        """Average the weights over steps, layers and heads: how much each patch had of each word."""
        return self.weights.mean((0, 1, 3))


@torch.no_grad()
def paint(
    model: Painter,
    words: Int[Tensor, "n L"],
    noise: Float[Tensor, "n R R"],
    *,
    steps: int = STEPS,
    keys: Int[Tensor, " L"] | None = None,
    may: Bool[Tensor, " L"] | None = None,
) -> Painted:
    """Paint lines of words from noise.

    Args:
        model: which paints.
        words: ids of the lines.
        noise: what each picture begins as.
        steps: how many.
        keys, may: as the painter takes them: whose key each word has, and which words may be attended to.
    """
    pictures, expected, weights = noise, [], []
    with model_in_evaluation_mode(model):
        for step in range(steps):
            time = torch.full((len(words),), step / steps, device=noise.device)
            with record() as calls:
                behind = model(pictures, time, words, keys=keys, may=may)
            crossed = [call.weights.dense() for (path, _), call in calls.items() if path.endswith(".cross")]
            weights.append(torch.stack(crossed))
            expected.append(behind)
            pictures = pictures + (behind - pictures) / (steps - step)
    return Painted(pictures, torch.stack(expected), torch.stack(weights))
