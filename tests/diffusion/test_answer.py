import numpy as np
import pytest
import torch

from regard.diffusion.answer import PromptPainting, draw_prompt
from regard.display.panels import Heat, Table
from regard.text.words import wordlike
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows
from tests.support.prompt_heat import painted


def answer(seed: int, joint: bool = False) -> PromptPainting:
    return PromptPainting(painted(seed, joint), "tiny", "3 steps")


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("seed", range(7))
def test_sentences_name_the_extremes_and_all_of_the_weight(seed: int, joint: bool) -> None:
    found = answer(seed, joint)
    top, last, mean = found.findings()
    heats = {word.name: found.heat.of(word)[0] for word in found.heat.prompt.words if not word.special}
    times = {name: float(heat.max() / heat.mean()) for name, heat in heats.items()}
    (first,), (even,) = names_in(top), names_in(last)
    assert (times[first], times[even]) == (max(times.values()), min(times.values()))
    weight, row, column, most = numbers_in(top)
    assert float(heats[first][int(row), int(column)]) == float(heats[first].max())
    shows(weight, float(heats[first].max()))
    shows(most.rstrip("×"), times[first])
    assert sum(map(float, numbers_in(mean))) == pytest.approx(1, abs=0.03)
    assert len(numbers_in(mean)) == 3 + joint
    sums = [float(found.heat.mean([n])[0].mean()) for word in found.heat.prompt.words for n in word.tokens]
    padding = float(found.heat.mean([-1])[0].mean())
    shown_with_its_numbers(found, [sum(sums[:6]), sum(sums[6:]), padding, 1 - sum(sums) - padding])


def test_panels_and_rows_have_the_same_numbers() -> None:
    found = answer(11)
    table, *heats, picture, layers = found.panels()
    assert isinstance(table, Table)
    assert isinstance(layers, Heat)
    for row, panel, word in zip(table.rows, heats, found.words, strict=True):
        assert isinstance(panel, Heat)
        assert panel.over is not None
        assert row[0] == panel.title == word.name
        assert wordlike(word.name)
        values = torch.tensor(panel.values)
        assert row[1:3] == [pytest.approx(float(values.mean())), pytest.approx(float(values.max()))]
        at_steps = torch.tensor(panel.over.values)
        torch.testing.assert_close(at_steps[:-1].mean(0), values)
        assert panel.largest is not None
        assert panel.largest >= float(at_steps.max())
        own = [each for each in found.rows() if each["word"] == word.name and each["picture"] == 0]
        assert [each["weight"] for each in own] == pytest.approx(values.flatten().tolist())
    assert len({panel.largest for panel in heats}) == 1, "one scale for all words"
    assert heats[0].largest == max(float(torch.tensor(panel.over.values).max()) for panel in heats)
    assert isinstance(picture, Heat)
    assert {panel.under for panel in heats} == {picture.name}
    assert picture.values == [[pytest.approx(1 - 128 / 255, abs=1e-3)] * 28] * 20, "grey, as large as it is"
    assert [sum(row) for row in layers.values] == pytest.approx([1.0] * 2), "all that a place gives"
    assert found.to_json()["format"] == "regard paint prompt"


def test_what_is_left_out_is_named() -> None:
    found = answer(3)
    assert numbers_in(found.exactness()[0]) == ["3", "3", "2"], "settings, steps and layers"
    found.heat.guided, found.heat.others = True, {"down.attn1", "up.attn1"}
    left_out = found.exactness()[-1]
    assert "guidance" in left_out
    assert numbers_in(left_out) == ["2"]


def test_each_word_has_the_picture_under_its_heat_on_one_scale() -> None:
    found = PromptPainting(painted(5), "tiny", "3 steps")
    figure = draw_prompt(found, 4)
    plain, *heated = [axes for axes in figure.axes if axes.images]
    assert len(plain.images) == 1
    assert len(heated) == 4
    largest = max(float(found.heat.of(word)[0].max()) for word in found.words[:4])
    for axes, word in zip(heated, found.words, strict=False):
        grey, heat = axes.images
        assert axes.get_title("left").startswith(f"{word.name}: ")
        np.testing.assert_allclose(heat.get_array(), found.heat.of(word)[0].numpy())
        assert heat.get_extent() == grey.get_extent(), "a place lies where it is on the picture"
        assert heat.norm.vmax == largest
