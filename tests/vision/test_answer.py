"""Where a model looks on an image: numbers computed by hand from the weights."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.display.panels import Heat
from regard.errors import RegardError
from regard.vision.answer import MIN_SINK, ImageAttention, Look, looked
from tests.said.reading import numbers_in
from tests.vision.test_pictures import PROCESSOR, built, noise


@pytest.fixture(scope="module")
def trace() -> Any:
    return regard.load(built("dinov2"), processor=PROCESSOR).trace(images=noise(131, 97))


def test_the_heat_is_the_row_of_cls(trace: Any) -> None:
    found = looked([trace])
    (look,) = found.looks
    dense = trace.attention[1].dense().double()
    assert (look.layer, look.head, look.query) == (1, None, 0)
    assert torch.allclose(look.heat, dense.mean(0)[0, 1:].unflatten(0, (4, 4)))
    assert look.special == pytest.approx(float(dense.mean(0)[0, 0]), abs=1e-9)
    received = dense.mean(0).mean(0)[1:]
    assert torch.allclose(look.received.flatten(), received / received.median())
    one = looked([trace], 0, -1).looks[0]
    assert (one.layer, one.head) == (0, 1)
    assert torch.allclose(one.heat.flatten(), trace.attention[0].dense().double()[1, 0, 1:])
    rows = found.rows()
    assert len(rows) == 16
    assert [(row["row"], row["column"]) for row in rows[:5]] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    boxes = torch.tensor([[row[each] for each in ("left", "top", "right", "bottom")] for row in rows])
    assert torch.allclose(boxes[6], torch.tensor(trace.patches.box(7)))


def test_without_cls_all_patches_look() -> None:
    trace = regard.load(built("siglip"), processor=PROCESSOR).trace(images=noise(131, 97))
    (look,) = looked([trace]).looks
    assert look.query is None
    assert torch.allclose(look.heat.flatten(), trace.attention[1].dense().double().mean(0).mean(0))
    found = looked([trace])
    token = int(look.heat.flatten().argmax())
    assert f"(patch {look.patch_name(token)})" in found.findings()[0]
    assert found.page().opening["token"] == token


def test_an_almost_even_heat_is_pale_and_says_so() -> None:
    """Colours end at the largest weight, but at least at four times the mean; a patch that is told apart has no say."""
    received = torch.ones(2, 4, dtype=torch.float64)
    received[0, 0] = MIN_SINK

    def heat(*row: float) -> Heat:
        look = Look("a", 0, "[CLS]", 0, None, 1, torch.tensor([[9.0, *row], [1.0] * 4]), 0.0, received, None)
        panel = ImageAttention([look]).panels()[1]
        assert isinstance(panel, Heat)
        return panel

    assert heat(1, 1, 1).largest == 4
    assert "even" in heat(1, 1, 1).note
    assert numbers_in(heat(1, 1, 1.6).note)[-1] == "1.47"
    assert "even" not in heat(0, 0, 2).note
    assert heat(1, 1, 50).largest == 50


def test_it_is_shown_in_every_medium(trace: Any, tmp_path: Path) -> None:
    found = looked([trace])
    data = found.to_json()
    assert data["texts"] == ["a picture"]
    assert "patch" in "".join(map(str, [found]))
    page = found.page()
    (text,) = page.data()["texts"]
    assert text["picture"]["src"].startswith("data:image/jpeg;base64,")
    assert (text["picture"]["first"], text["picture"]["rows"], text["picture"]["columns"]) == (1, 4, 4)
    assert text["picture"]["seen"] == pytest.approx(
        [each / side for each, side in zip(trace.patches.seen, (131, 97) * 2, strict=True)], abs=1e-5
    )
    assert text["tokens"]["word"] == [None] * 17
    assert page.opening | {"view": "tokens", "token": 0, "head": None} == page.opening


def test_what_is_no_picture_is_refused(trace: Any) -> None:
    with pytest.raises(RegardError, match="pass the trace of an image"):
        looked([regard.load().trace("a bank")])
    with pytest.raises(RegardError, match="got no trace"):
        looked([])
    with pytest.raises(RegardError, match="layer 2 is out of range"):
        looked([trace], 2)
    with pytest.raises(RegardError, match="head 2 is out of range"):
        looked([trace], 0, 2)
