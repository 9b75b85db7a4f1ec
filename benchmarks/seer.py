"""What a seer answers, where it looks and what removing a corner says, measured over 500 pictures of held-out digits.

    python -m benchmarks.seer [--seeds 0 1 2] [--values plain contextual] [--steps 2400]

Trains seers as `regard train --seer` does; a row a seer, with the processor's minutes of its training. Heat is the
weight that the last layer's row of "?" gives the patches, the mean of heads. Each corner is removed in turn: the one
whose removal makes the answer least likely is the one that removal names.
"""

import argparse
import time
from dataclasses import dataclass, fields
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.measure import machine
from regard.attention.recording import record
from regard.images.removal import FILLS, removed
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.nn.seer import Seer
from regard.nn.seer_config import IMAGE
from regard.train.asked_scenes import ASKS, AskedScenes, seer_tokenizer
from regard.train.checkpoint import TrainingState
from regard.train.loop import optimiser_of, train
from regard.train.painter_measures import corner_of_patches, share
from regard.train.scenes import CELL
from regard.train.settings import Settings, seer_config


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


def trained_seer(settings: Settings) -> tuple[Seer, AskedScenes]:
    """A seer that was trained with these settings, and what it learned from."""
    tokenizer = seer_tokenizer()
    config = seer_config(len(tokenizer), tokenizer.vocab[IMAGE], tokenizer.vocab[ASKS], settings)
    torch.manual_seed(settings.seed)
    model = Seer(config)
    data = AskedScenes(tokenizer, config.grid**2, batch=settings.batch, seed=settings.seed)
    optimiser = optimiser_of(model, settings)
    train(model, data, optimiser, settings, TrainingState(), save=lambda _: None, on_log=lambda _: None)
    return model, data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--values", nargs="+", default=["plain", "contextual"])
    parser.add_argument("--steps", type=int, default=Settings.for_seer().steps)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    print(" | ".join(["values", "seed", "minutes", *(field.name for field in fields(SeerMeasures))]))
    for values, seed in product(asked.values, asked.seeds):
        begun = time.process_time()
        settings = Settings.for_seer(values=values, seed=seed, steps=asked.steps, evaluate_every=0, save_every=0)
        model, data = trained_seer(settings)
        minutes = (time.process_time() - begun) / 60
        found = [f"{value:.3f}" for value in vars(measure_seer(model, data)).values()]
        print(" | ".join([values, str(seed), f"{minutes:.2f}", *found]), flush=True)


if __name__ == "__main__":
    main()
