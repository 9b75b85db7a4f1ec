"""A painted line: what is counted of it, by a painter whose pictures and weights are known, and of a random one."""

import json

import pytest
import torch

from regard.nn.painter import Painter
from regard.nn.painter_config import PainterConfig
from regard.questions.paint import answer
from regard.questions.paint.answer import painting
from regard.train.scene_words import LENGTH, WORDS, read_scene
from tests.train.test_painter_measures import knowing

SCENE = read_scene("a seven top left , a two bottom right")


def small(**changes: object) -> Painter:
    torch.manual_seed(0)
    return Painter(PainterConfig(vocabulary=len(WORDS), length=LENGTH, **({"layers": 2, "d_model": 6} | changes)))


def test_counts_of_a_painter_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "paint", knowing(through_edges=True, pointing=True))
    found = painting(small(), SCENE, samples=5)
    written, swapped, phrases, *cut = found.trials
    assert written.count((7, 2)) == (5, 5)
    assert swapped.count((2, 7)) == phrases.count((2, 7)) == (5, 5)
    assert [trial.count((7, 2)) for trial in cut] == [(0, 5), (5, 0)]
    assert found.pointing(2).tolist() == [0] * 5
    assert found.pointing(7).tolist() == [3] * 5
    assert found.shares(7) == pytest.approx([0.04 / 4.16] * 3 + [4.04 / 4.16])
    assert found.title() == "“a seven top left , a two bottom right”, painted 5 times"


def test_rows_and_json_are_of_every_word_step_layer_and_patch() -> None:
    found = painting(small(), SCENE, samples=3)
    rows = found.rows()
    assert len(rows) == 20 * 2 * 16 * 10
    sums: dict[tuple[object, ...], float] = {}
    for row in rows:
        key = (row["step"], row["layer"], row["row"], row["column"])
        sums[key] = sums.get(key, 0.0) + row["weight"]
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-5)
    content = json.loads(json.dumps(found.to_json()))
    assert content["format"] == "regard paint"
    assert content["words"] == SCENE.words
    assert [len(each["pictures"]) for each in content["trials"]] == [3] * 5
    assert torch.tensor(content["heat"]).shape == (3, 10, 16)


def test_the_seed_chooses_the_noise() -> None:
    first, again, other = (painting(small(), SCENE, samples=2, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.written.pictures, again.written.pictures)
    assert not torch.equal(first.written.pictures, other.written.pictures)
