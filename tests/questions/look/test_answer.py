"""Where a model looks on a picture: numbers by hand from the weights, sentences held against them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

import regard
from regard.display.panels import Heat
from regard.errors import RegardError
from regard.questions.look.answer import APART, Look, Looked, looked
from tests.models.test_pictures import PROCESSOR, built, noise


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
    assert f"the patches together look most at patch {look.called(token)} (" in found.findings()[0]
    assert found.page().opening["token"] == token


@given(some.integers(1, 5), some.integers(2, 7), some.integers(0, 2**31), some.booleans())
def test_sentences_hold(rows: int, columns: int, seed: int, sinks: bool) -> None:
    """The patch that is named has the largest heat of those that are not told apart; the tenth's share is theirs."""
    made = np.random.default_rng(seed)
    heat = torch.tensor(made.dirichlet(np.full(rows * columns + 1, 0.3))).double()
    received = torch.tensor(made.uniform(0.5, 2, (rows, columns)))
    if sinks:
        received.view(-1)[: 1 + rows * columns // 3] = APART + 7.4
    own = heat[1:].view(rows, columns)
    look = Look("cat.png", 0, "[CLS]", 3, None, 5, own, float(heat[0]), received, None)
    found = Looked([look]).findings()
    apart = {n for n in range(rows * columns) if float(received.view(-1)[n]) >= APART}
    others = [n for n in range(rows * columns) if n not in apart]
    called = re.search(r"looks most at patch (\d+),(\d+)", found[0])
    assert called is not None
    n = int(called[1]) * columns + int(called[2])
    flat = own.flatten()
    assert n in others
    assert float(flat[n]) == max(float(flat[m]) for m in others)
    times = re.search(r"of the weight, ([\d.]+) times the mean of all patches\.$", found[0])
    assert times is not None
    assert float(times[1]) == pytest.approx(float(flat[n] / flat.mean()), rel=0.06)
    assert ("told apart left out" in found[0]) == bool(apart)
    if apart:
        assert found[-1].startswith(f"Told apart, for they get {APART} times the median of all patches or more: ")
        assert all(f"{m // columns},{m % columns} (17 times)" in found[-1] for m in sorted(apart)[:5])
    share = re.search(
        r"The (\d+) of (\d+) patches that it looks at most have (\d+)% of what it gives them", " ".join(found)
    )
    if share is not None:
        assert int(share[2]) == len(others)
        largest = sorted((float(flat[m]) for m in others), reverse=True)
        assert int(share[3]) == pytest.approx(100 * sum(largest[: int(share[1])]) / sum(largest), abs=0.51)


def test_an_almost_even_heat_is_pale_and_says_so() -> None:
    """Colours end at the largest weight, but at least at four times the mean; a patch that is told apart has no say."""
    received = torch.ones(2, 4, dtype=torch.float64)
    received[0, 0] = APART

    def heat(*row: float) -> Heat:
        look = Look("a", 0, "[CLS]", 0, None, 1, torch.tensor([[9.0, *row], [1.0] * 4]), 0.0, received, None)
        panel = Looked([look]).panels()[1]
        assert isinstance(panel, Heat)
        return panel

    assert heat(1, 1, 1).largest == 4
    assert (
        heat(1, 1, 1).note
        == "As the patches lie on the picture. Grey: told apart. Almost even: at most 1.00 times the mean."
    )
    assert heat(1, 1, 1.6).note.endswith("Almost even: at most 1.47 times the mean.")
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
    with pytest.raises(RegardError, match="needs the trace of a picture"):
        looked([regard.load().trace("a bank")])
    with pytest.raises(RegardError, match="given no trace"):
        looked([])
    with pytest.raises(RegardError, match="layer 2 is out of range"):
        looked([trace], 2)
    with pytest.raises(RegardError, match="head 2 is out of range"):
        looked([trace], 0, 2)
