"""What words paint, measured: python -m benchmarks.painter [--seeds 0 1 2] [--values plain contextual] [--steps 2000]

Trains painters as `regard train --painter` does and measures each over 200 scenes (`regard.train.painter_measures`); a
row a painter, with the processor's minutes of its training.
"""

import argparse
import time
from dataclasses import fields

import torch

from benchmarks.measure import machine
from regard.nn.painter import Painter
from regard.train.checkpoint import TrainingState
from regard.train.loop import optimiser_of, train
from regard.train.painter_measures import PainterMeasures, measure_painter
from regard.train.scene_words import LENGTH, WORDS
from regard.train.scenes import Scenes
from regard.train.settings import Settings, painter_config


def trained_painter(settings: Settings) -> Painter:
    """A painter that was trained with these settings."""
    torch.manual_seed(settings.seed)
    model = Painter(painter_config(len(WORDS), LENGTH, settings))
    data, optimiser = Scenes(batch=settings.batch, seed=settings.seed), optimiser_of(model, settings)
    train(model, data, optimiser, settings, TrainingState(), save=lambda _: None, on_log=lambda _: None)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--values", nargs="+", default=["plain", "contextual"])
    parser.add_argument("--steps", type=int, default=2000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    names = [field.name for field in fields(PainterMeasures)]
    print(" | ".join(["values", "seed", "minutes", *names]))
    for values in asked.values:
        for seed in asked.seeds:
            begun = time.process_time()
            model = trained_painter(
                Settings.for_painter(
                    values=values, seed=seed, steps=asked.steps, evaluate_every=0, save_every=0, sample_every=0
                )
            )
            minutes = (time.process_time() - begun) / 60
            found = [f"{value:.3f}" for value in vars(measure_painter(model)).values()]
            print(" | ".join([values, str(seed), f"{minutes:.1f}", *found]), flush=True)


if __name__ == "__main__":
    main()
