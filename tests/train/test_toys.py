"""Tasks whose alignment is known: a trained translator's cross-attention finds it."""

import pytest
import torch

import regard
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.train.data import Batch
from regard.train.loop import optimiser_of, train, validate
from regard.train.run_folder import TrainingState
from regard.train.settings import Settings

SYMBOLS, LENGTH, START, END = 60, 8, 61, 62  # so many that the next one cannot be guessed from those around it


class Toy:
    """Rows of different symbols, and the same turned round or sorted."""

    def __init__(self, task: str) -> None:
        self.task = task

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        drawn = torch.Generator().manual_seed(place[1])
        symbols = torch.stack([torch.randperm(SYMBOLS, generator=drawn)[:LENGTH] for _ in range(64)])
        target = symbols.flip(1) if self.task == "reverse" else symbols.sort(1).values
        ends, starts = torch.full((64, 1), END), torch.full((64, 1), START)
        ids, labels = torch.cat([starts, target], 1), torch.cat([target, ends], 1)
        return Batch(ids, labels, None, torch.cat([symbols, ends], 1)), (0, place[1] + 1)

    def validation(self, most: int | None = None):
        yield self.batch((0, 10**6))[0]


@pytest.mark.long
@pytest.mark.parametrize("task", ["reverse", "sort"])
def test_cross_attention_finds_the_alignment(task: str) -> None:
    """95 % of positions within 60 seconds of training: 600 steps take 15 of them on two cores."""
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig.translator(END + 1, START, layers=2, d_model=64, heads=1, d_hidden=128, dropout=0.0)
    )
    settings = Settings(steps=600, batch=64, rate=3e-3, least_rate=3e-4, warmup=50, decay=0.0, beta2=0.98,
                        evaluate_every=0, save_every=0)  # fmt: skip
    data = Toy(task)
    optimiser, start = optimiser_of(model, settings), TrainingState()
    train(model, data, optimiser, settings, start, save=lambda _: None, on_log=lambda _: None)
    assert validate(model, data.validation(), settings) < 0.1
    unseen, _ = data.batch((0, 10**7))
    model.eval()
    with torch.no_grad(), regard.record() as calls:
        model(unseen.source, unseen.ids)
    symbols = unseen.source[:, :LENGTH]
    came_from = torch.arange(LENGTH - 1, -1, -1).expand(64, LENGTH) if task == "reverse" else symbols.argsort(1)
    found = []
    for (path, _), call in calls.items():
        if path.endswith("cross"):
            looked = call.weights.dense().mean(1)[:, :LENGTH].argmax(-1)  # row t writes symbol t
            found.append(float((looked == came_from).float().mean()))
    assert len(found) == 2
    assert max(found) >= 0.95
