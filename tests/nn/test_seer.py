"""A seer: each patch is the token that it is said to be, and all else is a decoder's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.nn.seer import Seer, seer_processor
from regard.nn.seer_config import IMAGE, SeerConfig
from regard.train.asked_scenes import seer_tokenizer

TOKENIZER = seer_tokenizer()
CONFIG = SeerConfig(vocabulary=len(TOKENIZER), length=23, layers=2, d_model=26, heads=2, image=TOKENIZER.vocab[IMAGE])


def made(**changes: Any) -> Seer:
    torch.manual_seed(3)
    return Seer(replace(CONFIG, **changes)).eval()


@pytest.fixture
def seer() -> Seer:
    return made()


def noise() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 255, (64, 64, 3), dtype=np.uint8)


def test_a_picture_is_read_as_words_that_have_its_patches_for_embeddings() -> None:
    seer = made(values="contextual")
    pixels = torch.rand(2, 3, 16, 16)
    ids = torch.tensor([[16, *[CONFIG.image] * 16, 16, 16]] * 2)
    with torch.no_grad():
        told = seer(ids, pixels)
        for n in range(16):  # row by row
            row, column = 4 * (n // 4), 4 * (n % 4)
            seer.embedding.weight[n] = seer.patch(pixels[1, :, row : row + 4, column : column + 4].mean(0).flatten())
        ids[1, 1:17] = torch.arange(16)
        as_words = seer(ids[1:])
    torch.testing.assert_close(as_words.last_hidden_state[0], told.last_hidden_state[1])
    assert not torch.allclose(told.logits[0], told.logits[1])


@pytest.mark.parametrize("values", ["plain", "contextual"])
def test_patches_are_read_by_what_is_behind_them_or_by_who_asks(values: str) -> None:
    ids = torch.tensor([[16, *[CONFIG.image] * 16, 16, 5, 16]] * 2)
    with torch.no_grad(), regard.record() as calls:
        made(values=values, asks=5)(ids, torch.rand(2, 3, 16, 16))
    expected = torch.ones(20, 20).tril()
    if values == "plain":
        expected[1:17, 1:17] = torch.eye(16)
        expected[[17, 19], 1:17] = 0
    for call in calls.values():
        assert torch.equal((call.weights.dense() > 0).float(), expected.expand(2, 2, 20, 20))


def test_places_and_words_begin_as_large_as_each_other(seer: Seer) -> None:
    for table in (seer.embedding, seer.positions):
        assert float(table.weight.detach().std()) == pytest.approx(1, abs=0.1)


def test_a_picture_is_resized_and_its_ink_is_two() -> None:
    processor = seer_processor(CONFIG, TOKENIZER)
    picture = np.full((32, 32, 3), 255, np.uint8)
    picture[:4, 8:10] = 0
    read = processor(text=f"{IMAGE} Top left?", images=Image.fromarray(picture), return_tensors="pt")
    expected = torch.zeros(16, 16)
    expected[:2, 4] = 2
    torch.testing.assert_close(read["pixel_values"], expected.expand(1, 3, 16, 16))
    assert TOKENIZER.decode(read["input_ids"][0]).split()[-3:] == ["top", "left", "?"]
    assert read["input_ids"].tolist()[0].count(CONFIG.image) == 16


def test_it_is_saved_opened_and_traced(seer: Seer, tmp_path: Path) -> None:
    ours = regard.load(seer, tokenizer=TOKENIZER)
    trace = ours.trace("top right ?", images=noise())
    assert [token.text for token in trace.tokens[:5]] == ["0,0", "0,1", "0,2", "0,3", "1,0"]
    assert [token.text for token in trace.tokens[16:]] == ["top", "right", "?"]
    assert trace.patches is not None
    assert (trace.patches.first, trace.patches.seen, trace.patches.box(5)) == (0, (0, 0, 64, 64), (16, 16, 32, 32))
    assert trace.status.difference is not None
    assert trace.status.difference < 1e-6
    read = ours.image_processor(text=f"{IMAGE}\ntop right ?", images=Image.fromarray(noise()), return_tensors="pt")
    with torch.no_grad(), regard.record() as calls:
        logits = seer(read["input_ids"], read["pixel_values"]).logits[0]
    torch.testing.assert_close(trace.logits, logits)
    weights = [call.weights.dense()[0] for call in calls.values()]
    for layer in range(2):
        torch.testing.assert_close(trace.attention[layer].dense(), weights[layer])
    ours.save(tmp_path)
    again = regard.load(tmp_path)
    assert isinstance(again.model, Seer)
    assert again.model.config == CONFIG
    assert torch.equal(again.trace("top right ?", images=noise()).logits, trace.logits)


def test_a_patch_that_is_painted_over_is_the_token_that_changes(seer: Seer) -> None:
    ours = regard.load(seer, tokenizer=TOKENIZER)
    after = noise()
    after[16:32, 32:48] = 255 - after[16:32, 32:48]
    first, second = (ours.trace("top right ?", images=each).hidden_states[0] for each in (noise(), after))
    assert (first != second).any(-1).nonzero().flatten().tolist() == [6]


def test_what_is_refused(seer: Seer) -> None:
    ours = regard.load(seer, tokenizer=TOKENIZER)
    with pytest.raises(regard.RegardError, match="reads pictures in a text: give one beside them"):
        ours.trace(images=noise())
    with pytest.raises(regard.RegardError, match="text has 25 tokens, special ones included: transformer takes 23"):
        ours.trace("top left ? top left ? top left ?", images=noise())
    assert len(ours.trace("top left ?").tokens) == 3  # a text alone is read as a decoder reads it
