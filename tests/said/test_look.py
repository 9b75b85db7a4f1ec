"""What `see --image` and `see --image --remove` say is what their numbers are."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as some

from regard.vision.answer import MIN_SINK, ImageAttention, Look, Removal
from tests.said.reading import numbers_in, shown_with_its_numbers, shows


def look(rows: int, columns: int, seed: int, sinks: bool = False, removal: Removal | None = None) -> Look:
    made = np.random.default_rng(seed)
    heat = torch.tensor(made.dirichlet(np.full(rows * columns + 1, 0.3))).double()
    received = torch.tensor(made.uniform(0.5, 2, (rows, columns)))
    if sinks:
        received.view(-1)[: 1 + rows * columns // 3] = MIN_SINK + 7.4
    answer = ("cat", 0.25) if removal is None or removal.unit == "nats" else None
    return Look(
        "cat.png", 0, "[CLS]", 3, None, 5, heat[1:].view(rows, columns), float(heat[0]), received, None, answer, removal
    )


@given(some.integers(1, 6), some.integers(2, 7), some.integers(0, 2**31), some.booleans())
def test_the_patch_with_the_most_weight_is_named(rows: int, columns: int, seed: int, sinks: bool) -> None:
    one = look(rows, columns, seed, sinks)
    heat, others = one.heat.flatten(), one.order
    _, peak, *more = ImageAttention([one]).findings()
    best = max(others, key=lambda n: float(heat[n]))
    assert f"a {'non-sink ' * sinks}patch in the {one.side(best)} (patch {one.patch_name(best)}) " in peak
    assert ("sink" in peak) == ("ink patches" in " ".join(more)) == sinks
    assert all(one.patch_name(n) in more[0] for n in one.sinks[:3])
    top = sorted((float(heat[n]) for n in others), reverse=True)
    few = max(1, round(0.1 * len(heat)))
    assert bool(more) == (sinks or few > 1)
    numbers = [0.25, *range(7), sum(top[:few]) / sum(top), few, len(others), MIN_SINK, len(one.sinks) - 3]
    shown_with_its_numbers(ImageAttention([one]), numbers)


@given(some.integers(1, 4), some.integers(2, 4), some.integers(0, 2**31), some.booleans(), some.booleans())
def test_the_largest_effect_is_named(rows: int, columns: int, seed: int, nats: bool, falls: bool) -> None:
    made = np.random.default_rng(seed)
    after = torch.tensor(made.uniform(0.1, 0.4, (rows, columns)) + 0.5 * (not falls))
    heat = torch.tensor(made.uniform(0.1, 1, (rows, columns)))
    before, outcome = (np.log(0.5), after.log()) if nats else (0.5, after)
    removed = Removal("blank", "nats" if nats else "1 − cosine", float(before), outcome, heat, (rows, columns))
    one = look(rows, columns, seed, removal=removed)
    effect, heaviest, _ = ImageAttention([one]).findings()
    assert f"patch {one.patch_name(int(after.argmin()))}" in effect
    assert f"patch {one.patch_name(int(heat.argmax()))} " in heaviest
    probabilities = [printed for printed in numbers_in(effect) if "." in printed]
    others = (float(after.sum()) - float(after.min())) / (after.numel() - 1)
    for printed, value in zip(probabilities, [0.5, float(after.min()), others][: 2 + falls], strict=True):
        shows(printed, value)
    assert ("“cat”" in effect) == nats


def test_a_patch_is_in_a_ninth_of_the_image() -> None:
    sides = [look(6, 7, 0).side(n) for n in (0, 3, 14, 17, 20, 41)]
    assert sides == ["upper left", "upper middle", "left", "middle", "right", "lower right"]


def test_a_region_of_several_patches_is_named_by_its_first_and_last() -> None:
    after = torch.zeros(4, 3).double()
    after[1, 2] = -1
    one = look(11, 3, 0, removal=Removal("mean", "nats", 0.0, after, torch.rand(4, 3).double(), (11, 3)))
    assert "patches 2,2–4,2 " in ImageAttention([one]).findings()[0]
