"""Does a seer answer right, does its heat say which corner it was asked about, and does removing a corner say so too?

Heat is the weight that the last layer's row of "?" gives the patches, the mean of heads. Each corner is removed in
turn: the one whose removal makes the answer least likely is the one that removal names.
"""

from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.recording import record
from regard.images.removal import FILLS, removed
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.nn.seer import Seer
from regard.train.asked_scenes import AskedScenes
from regard.train.painter_measures import corner_of_patches, share
from regard.train.scenes import CELL


@dataclass(frozen=True)
class SeerMeasures:
    """Shares from 0 to 1, over pictures of held-out digits with a question each.

    right: answers that are. pointing: whose largest heat is in the corner asked about; 0.25 by chance. inside: the heat
    in that corner, of all that patches get. blank, mean, blur: of which that corner's removal takes most from the
    answer, where white paper, the picture's mean or a blur stands for it; 0.25 by chance.
    """

    right: float
    pointing: float
    inside: float
    blank: float
    mean: float
    blur: float

    def __str__(self) -> str:
        named = ", ".join(f"{getattr(self, fill):.1%} ({fill})" for fill in FILLS)
        return (
            f"{self.right:.1%} of answers are right; in {self.pointing:.1%} the largest heat is in the corner asked "
            f"about; removal names that corner in {named}"
        )


@torch.no_grad()
def measure_seer(model: Seer, data: AskedScenes, pictures: int = 500, seed: int = 5) -> SeerMeasures:
    """Ask about pictures of digits that it never saw, as they are and with each corner removed, and count."""
    asked, corners = data.asked(data.held, pictures, torch.Generator().manual_seed(seed))
    assert asked.pixels is not None
    ids, pixels, wanted = asked.ids.to(model.device), asked.pixels.to(model.device), asked.labels[:, -1]

    def answers(pixels: Tensor) -> Float[Tensor, "n V"]:
        return model(ids, pixels).logits[:, -1].log_softmax(-1).cpu()

    with model_in_evaluation_mode(model):
        with record() as calls:
            told = answers(pixels)
        said = told.argmax(-1, keepdim=True)
        drops = dict[str, float]()
        for fill in FILLS:
            without = []
            for row, column in product(range(2), range(2)):
                rows, columns = (slice(n * CELL, (n + 1) * CELL) for n in (row, column))
                without.append(answers(removed(pixels, rows, columns, fill)).gather(1, said))
            drops[fill] = share(torch.cat(without, 1).argmin(-1) == corners)
    last = list(calls.values())[-1].weights.dense()  # (n, H, L, L)
    heat = last.mean(1)[:, -1, : model.config.grid**2].cpu()
    corner = corner_of_patches(model.config.grid)
    inside = (heat * (corner == corners[:, None])).sum(-1) / heat.sum(-1)
    pointing = share(corner[heat.argmax(-1)] == corners)
    return SeerMeasures(share(said[:, 0] == wanted), pointing, float(inside.mean()), **drops)
