"""On tiny random pipelines of every kind: their pictures, and their weights in float64 by hand."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.diffusion.answer import prompt_painting
from regard.diffusion.pipeline import recorded_heat
from regard.errors import RegardError
from regard.memory import limit_memory_to
from tests.support import pipelines

pytest.importorskip("diffusers", reason="the extra diffusion is not installed")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

KINDS: dict[str, tuple[Callable[[], Any], dict[str, object]]] = {
    "stable diffusion": (pipelines.stable_diffusion, {}),
    "pixart": (
        pipelines.pixart,
        {"use_resolution_binning": False, "max_sequence_length": pipelines.LENGTH, "clean_caption": False},
    ),
    "stable diffusion 3": (pipelines.stable_diffusion_3, {"max_sequence_length": 11}),
    "flux": (pipelines.flux, {"max_sequence_length": pipelines.LENGTH}),
}


def painter(kind: str) -> tuple[Any, Callable[..., Any]]:
    """Make a pipeline, and what paints by it: 16 × 24 pixels in three steps."""
    make, own = KINDS[kind]
    pipe = make()
    pipe.set_progress_bar_config(disable=True)

    def paint(text: str = "a cat on the mat", **given: Any) -> Any:
        options = {"num_inference_steps": 3, "height": 16, "width": 24, "output_type": "np"} | own | given
        return pipe(text, generator=torch.Generator().manual_seed(1), **options).images

    return pipe, paint


class Sigmoid:
    """Attention without a softmax."""

    def __call__(self, attn: Any, states: torch.Tensor, encoder_hidden_states: Any = None, **_: Any) -> torch.Tensor:
        return states.sigmoid()


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_stay_what_they_are_and_weights_are_those_computed_with(kind: str) -> None:
    pipe, paint = painter(kind)
    alone = paint(num_images_per_prompt=2)
    with recorded_heat(pipe) as heat, regard.record() as calls:
        seen = paint(num_images_per_prompt=2)
    assert np.abs(alone - seen).max() == 0.0
    assert [len(step) for step in heat.weights] == [len(heat.layers)] * 3
    joint, words = kind in ("stable diffusion 3", "flux"), heat.prompt.length
    assert heat.guided == (kind != "flux")
    for step, of_layers in enumerate(heat.weights):
        for layer, kept in zip(heat.layers, of_layers, strict=True):
            weights = calls[layer.path, step].weights
            query, key = weights.query.double(), weights.key.double()
            scores = query @ key.mT / query.shape[-1] ** 0.5
            if weights.rule.bias is not None:
                scores = scores + weights.rule.bias
            whole = scores.softmax(-1)[-2:]  # what is guided stands first, and has no words
            if joint and kind == "flux":
                whole = whole[:, :, words:, :words]
            elif joint:
                whole = whole[:, :, :-words, -words:]
            rows, columns = layer.grid
            assert (rows, columns, whole.shape[2]) == (rows, columns, rows * columns)
            own = whole.unflatten(2, layer.grid)
            torch.testing.assert_close(kept[..., :-1].double(), own[..., list(heat.prompt.keys)], atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(
                kept[..., -1].double(), own[..., heat.prompt.padding].sum(-1), atol=1e-6, rtol=1e-5
            )
    other, again = painter(kind)
    with recorded_heat(other, heads=False) as thin:
        again(num_images_per_prompt=2)
    assert thin.weights[0][0].shape[1] == 1
    torch.testing.assert_close(thin.of("cat"), heat.of("cat"), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_is_the_key_that_its_state_becomes(kind: str) -> None:
    """A word's state changed, before anything else looked at it, changes that key's scores in the first layer alone."""
    pipe, paint = painter(kind)
    with recorded_heat(pipe) as before:
        paint()
    token = before.word("mat").tokens[-1]
    key, whole = before.prompt.keys[token], type(pipe).encode_prompt

    @functools.wraps(whole)
    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        states, *others = whole(self, *args, **kwargs)
        states = states.clone()
        states[:, key] += torch.linspace(-2, 3, states.shape[-1])
        return states, *others

    type(pipe).encode_prompt = changed
    try:
        with recorded_heat(pipe) as after:
            paint()
    finally:
        type(pipe).encode_prompt = whole
    first = [each.weights[0][0][..., : len(before.prompt.tokens)].double() for each in (before, after)]
    ratio = (first[1] / first[0]).log()
    ratio = ratio - ratio[..., :1]  # the sum of a row is another: every weight of it changed by the same factor
    others = [n for n in range(len(before.prompt.tokens)) if n != token]
    assert float(ratio[..., others].abs().max()) < 1e-4
    assert float(ratio[..., token].abs().max()) > 1e-2


def test_what_cannot_be_recorded_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, paint = painter("stable diffusion")
    with pytest.raises(regard.RegardError, match="got 2 texts, expected one at a time"), recorded_heat(pipe):
        paint(["a cat", "a mat"])
    with pytest.raises(regard.RegardError, match="a second text was painted in one block"), recorded_heat(pipe):
        paint(), paint()
    monkeypatch.setattr("regard.memory.SMALL", 0)
    with (
        limit_memory_to(3_000),
        pytest.raises(regard.RegardError, match=r"the weights of 3 steps .*heads=False"),
        recorded_heat(pipe),
    ):
        paint(height=64, width=64)
    pipe.unet.set_attn_processor(Sigmoid())
    with (
        pytest.raises(regard.RegardError, match=r"attn1: its processor Sigmoid computes attention that can't be seen"),
        recorded_heat(pipe),
    ):
        paint()
    with (
        pytest.raises(regard.RegardError, match="got a object with no model that paints a text, expected one of UNet"),
        recorded_heat(object()),
    ):
        pass
    assert "encode_prompt" not in vars(pipe)


def test_an_ip_adapters_picture_is_told_apart_from_the_words() -> None:
    pipe, paint = painter("stable diffusion")
    with recorded_heat(pipe) as words:
        paint()
    options = pipelines.add_ip_adapter(pipe, 4)
    alone = paint(**options)
    with recorded_heat(pipe) as heat, regard.record() as calls:
        seen = paint(**options)
    assert np.abs(alone - seen).max() == 0.0
    assert [layer.path for layer in heat.layers] == [layer.path for layer in words.layers]
    assert heat.beside == {layer.path for layer in heat.layers}
    assert heat.others == words.others
    for layer, kept in zip(heat.layers, heat.weights[0], strict=True):
        torch.testing.assert_close(kept.sum(-1), torch.ones(kept.shape[:-1]))  # of the words alone
        first, beside = (calls[f"{layer.path}.processor", call].weights for call in (0, 1))
        assert (first.shape[-1], beside.shape[-1]) == (heat.prompt.length, 4)
    found = prompt_painting(regard.load_pipeline(pipe), "a cat on the mat", steps=2, height=16, width=24, **options)
    assert any("4 layers' attention to a given image" in line for line in found.exactness())


def test_of_flux_the_layers_that_look_at_a_picture_too_are_told() -> None:
    pipe, paint = painter("flux")
    options = pipelines.add_flux_ip_adapter(pipe, 4)
    alone = paint(**options)
    with recorded_heat(pipe) as heat:
        seen = paint(**options)
    assert np.abs(alone - seen).max() == 0.0
    assert (heat.beside, heat.others) == ({"transformer_blocks.0.attn"}, set())
    assert [len(step) for step in heat.weights] == [2] * 3


def test_flux_is_guided_in_runs_of_their_own() -> None:
    pipe, paint = painter("flux")
    options = {"negative_prompt": "a river", "true_cfg_scale": 3.0}
    alone = paint(**options)
    with recorded_heat(pipe) as heat, regard.record() as calls:
        seen = paint(**options)
    assert np.abs(alone - seen).max() == 0.0
    assert (heat.prompt.text, heat.guided, len(heat.weights)) == ("a cat on the mat", True, 3)
    words = heat.prompt.length
    for step, of_layers in enumerate(heat.weights):
        for layer, kept in zip(heat.layers, of_layers, strict=True):
            own = calls[layer.path, 2 * step].weights[:, :, words:, :words].unflatten(2, layer.grid)
            torch.testing.assert_close(kept[..., :-1], own[..., list(heat.prompt.keys)], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["stable diffusion", "flux"])
def test_a_text_that_is_led_away_from_itself_is_refused(kind: str) -> None:
    pipe, paint = painter(kind)
    text = "a cat on the mat"
    options = {"true_cfg_scale": 3.0} if kind == "flux" else {}
    with pytest.raises(RegardError, match="negative_prompt: it equals the text"), recorded_heat(pipe):
        paint(text, negative_prompt=text, **options)


def test_attention_by_hand_is_recorded_if_it_is_computed_at_once() -> None:
    from diffusers.models.attention_processor import AttnProcessor

    pipe, paint = painter("stable diffusion")
    with recorded_heat(pipe) as fused:
        paint()
    pipe.unet.set_attn_processor(AttnProcessor())
    alone = paint()
    with recorded_heat(pipe) as heat:
        seen = paint()
    assert np.abs(alone - seen).max() == 0.0
    assert (heat.layers, heat.others) == (fused.layers, fused.others)
    for ours, theirs in zip(heat.weights, fused.weights, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    pipe.enable_attention_slicing(2)
    error = r"attn1: its processor SlicedAttnProcessor computes attention that can't be seen"
    with pytest.raises(regard.RegardError, match=error), recorded_heat(pipe):
        paint()
