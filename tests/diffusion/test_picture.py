import numpy as np

from regard.diffusion.answer import PromptPainting
from regard.diffusion.picture import draw_prompt
from tests.support.prompt_heat import painted


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
