"""What a seer answers, measured: python -m benchmarks.seer [--seeds 0 1 2] [--values plain contextual] [--steps 1600]

Trains seers as `regard train --seer` does and measures each over 500 pictures of held-out digits
(`regard.train.seer_measures`); a row a seer, with the processor's minutes of its training.
"""

import argparse
import time
from dataclasses import fields
from itertools import product

import torch

from benchmarks.measure import machine
from regard.nn.seer import Seer
from regard.nn.seer_config import IMAGE
from regard.train.asked_scenes import ASKS, AskedScenes, seer_tokenizer
from regard.train.checkpoint import TrainingState
from regard.train.loop import optimiser_of, train
from regard.train.seer_measures import SeerMeasures, measure_seer
from regard.train.settings import Settings, seer_config


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
