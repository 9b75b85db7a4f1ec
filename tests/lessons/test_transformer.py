"""Schematic figures of whole models follow the config that they are given, and stay inside their sheets."""

import pytest
import torch

from drawings.transformer import blocks, diffusion_unet, embedding_process
from regard.nn.config import TransformerConfig
from tests.lessons.test_attention import told


def test_embedding_process() -> None:
    learned, added = torch.randn(3, 20), torch.randn(3, 20)
    figure = embedding_process(["Life", "is", "short"], [10, 2, 31], learned, 30522, added)
    text = told(figure)
    for part in ("Life", "31", "30,522 × 20", "+ position", "the first 16 of 20 numbers"):
        assert part in text
    drawn = [torch.tensor(image.get_array()).float()[:, 0] for image in figure.axes[0].images]
    assert len(drawn) == 9
    torch.testing.assert_close(drawn[0], learned[0, :16])
    torch.testing.assert_close(drawn[8], (learned + added)[2, :16])
    mixed = embedding_process(["Life", "is", "short"], [10, 2, 31], learned, 30522, added, added - learned)
    assert {"= X", "y, which\nknows the text"} <= {text.get_text() for text in mixed.axes[0].texts}
    told(mixed)  # in the sheet
    last = torch.tensor(mixed.axes[0].images[11].get_array()).float()[:, 0]
    torch.testing.assert_close(last, (added - learned)[2, :16])
    assert "position" not in told(embedding_process(["a"], [0], learned[:1, :4], 5))


def test_a_decoders_block() -> None:
    text = told(blocks(TransformerConfig(vocabulary=65, length=64), tokens=9))
    for part in ("decoder block × 4", "self-attention, 4 heads × 32", "those before", "128 → 512 → 128", "9 × 128",
                 "last norm, then scores of 65 tokens", "learned positions"):  # fmt: skip
        assert part in text
    assert "cross" not in text
    assert "encoder block" not in text
    assert text.count("layer norm") == 2


def test_an_encoder_with_its_norms_behind() -> None:
    text = told(blocks(TransformerConfig.bert()))
    assert "encoder block × 12" in text
    assert "the whole text" in text
    assert "contextual embeddings" in text
    assert "last norm" not in text
    assert "+ segments, norm" in text


def test_both_with_cross_attention_between() -> None:
    text = told(blocks(TransformerConfig.translator(800, start=1)))
    for part in ("encoder block × 3", "decoder block × 3", "cross-attention, 8 heads × 32", "keys and values",
                 "after a last norm", "table 800 × 256 + sinusoidal positions"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_positions_that_add_nothing_are_not_added(positions) -> None:
    config = TransformerConfig(vocabulary=65, positions=positions, norm="rms")
    text = told(blocks(config))
    assert "positions" not in text
    assert "RMS norm" in text


def test_a_u_nets_grids() -> None:
    text = told(diffusion_unet())
    for part in ("64 × 64 grid", "1280 channels", "77 tokens × 768", "4096, 1024, 256, 64 queries"):
        assert part in text
    assert "5 tokens × 32" in told(diffusion_unet((5, 32), [(16, 8), (8, 16), (4, 32)]))
