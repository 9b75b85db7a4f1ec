"""What is measured of a seer: by seers whose shares are known, and by two that are trained here."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.seer import SeerMeasures, measure_seer, trained_seer
from regard.attention.attend import attend
from regard.nn.seer_config import SeerConfig
from regard.train.asked_scenes import AskedScenes, seer_tokenizer
from regard.train.painter_measures import corner_of_patches
from regard.train.scene_words import DIGITS
from regard.train.settings import Settings

TOKENIZER = seer_tokenizer()
DATA = AskedScenes(TOKENIZER, 16, batch=1, seed=0)
QUERY = {tuple(ids[-3:].tolist()): corner for corner, ids in enumerate(DATA.questions)}


class Knowing(nn.Module):
    """Names the digit that is nearest to what a corner shows; which corner that is, and which it looks at, is given."""

    def __init__(self, *, reads: int = 0, looks: int = 0) -> None:
        super().__init__()
        self.config, self.device = SeerConfig(vocabulary=len(TOKENIZER), length=19), torch.device("cpu")
        self.reads, self.looks = reads, looks

    def forward(self, ids: Tensor, pixels: Tensor) -> Any:
        asked = torch.tensor([QUERY[tuple(row[-3:].tolist())] for row in ids])
        cells = pixels[:, 0].unflatten(1, (2, 8)).unflatten(3, (2, 8)).transpose(2, 3).flatten(1, 2)  # (n, 4, 8, 8)
        shown = cells[torch.arange(len(ids)), (asked + self.reads) % 4].flatten(1) - 1
        held = DATA.held
        apart = torch.cdist(shown, held.pictures.flatten(1))  # (n, digits)
        nearest = torch.stack([apart[:, held.labels == digit].amin(1) for digit in range(10)], 1)
        logits = torch.full((len(ids), 1, len(TOKENIZER)), -1e9)
        logits[:, 0, TOKENIZER.convert_tokens_to_ids(list(DIGITS))] = -nearest
        scores = 3.0 * (corner_of_patches(4) == ((asked + self.looks) % 4)[:, None]).float()
        keys = torch.zeros(len(ids), 1, 19, 1)
        bias = torch.cat([scores, torch.zeros(len(ids), 3)], 1)[:, None, None].expand(-1, 1, 19, -1)
        attend(keys, keys, keys, bias=bias)
        return SimpleNamespace(logits=logits)


@pytest.mark.parametrize("reads", [0, 1])
@pytest.mark.parametrize("looks", [0, 1])
def test_shares_of_seers_that_are_known(reads: int, looks: int) -> None:
    found = measure_seer(Knowing(reads=reads, looks=looks), DATA, pictures=101)  # type: ignore[arg-type]
    assert found.right == 1 if reads == 0 else found.right < 0.3
    assert found.pointing == (looks == 0)
    e = float(torch.tensor(3.0).exp())
    assert found.inside == pytest.approx((e if looks == 0 else 1) / (e + 3))
    for share in (found.blank, found.mean, found.blur):
        assert share > 0.9 if reads == 0 else share == 0


def measured(**changes: Any) -> SeerMeasures:
    return measure_seer(*trained_seer(Settings.for_seer(**({"evaluate_every": 0, "seed": 0} | changes))))


@pytest.mark.long
def test_it_answers_after_a_quarter_of_the_steps() -> None:
    found = measured(steps=400)
    assert found.right > 0.8
    assert found.pointing > 0.8
    assert min(found.blank, found.mean, found.blur) > 0.75


@pytest.mark.nightly
def test_where_patches_see_no_others_heat_and_removal_name_the_corner() -> None:
    found = measured()
    assert found.right >= 0.96
    assert found.pointing >= 0.98
    assert min(found.blank, found.mean, found.blur) >= 0.97


@pytest.mark.nightly
def test_where_patches_see_others_removal_names_the_corner_and_heat_need_not() -> None:
    found = measured(values="contextual", seed=1)
    assert found.right >= 0.96
    assert found.pointing <= 0.8
    assert min(found.blank, found.mean, found.blur) >= 0.97
