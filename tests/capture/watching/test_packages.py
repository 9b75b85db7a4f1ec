"""Models of other packages: watching changes no output, and sees as many attention calls as the model makes."""

from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.errors import RegardError
from tests.support.zoo import package

pytestmark = [
    pytest.mark.zoo,
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("UserWarning", "DeprecationWarning", "FutureWarning")),
]


def watched(model: nn.Module, *inputs: Any) -> list[Any]:
    """Watch a pass, compare its output with the plain one, and return the calls in order."""
    plain = model.eval()(*inputs)  # with gradients: nn.MultiheadAttention's fast path would round otherwise
    try:
        with regard.watch(model) as seen:
            output = model(*inputs)
    except RegardError:  # raised at the end of the block: there was no attention
        assert not seen
    assert torch.equal(plain, output)
    assert seen.unrecorded == {}
    return list(seen.values())


# Name, size of the image, calls. cait and xcit have class attention, siglip attention pooling, tnt two calls a block.
TIMM = [
    ("vit_tiny_patch16_224", 64, 12),
    ("deit_tiny_distilled_patch16_224", 64, 12),
    ("vit_small_patch14_reg4_dinov2", 56, 12),
    ("eva02_tiny_patch14_224", 56, 12),
    ("beit_base_patch16_224", 64, 12),
    ("swin_tiny_patch4_window7_224", 56, 12),
    ("cait_xxs24_224", 64, 26),
    ("xcit_nano_12_p16_224", 64, 14),
    ("vit_base_patch16_siglip_224", 64, 13),
    ("convit_tiny", 64, 12),
    ("pvt_v2_b0", None, 8),
    ("mvitv2_tiny", 64, 10),
    ("tnt_s_patch16_224", None, 24),
    ("skresnet18", None, 0),  # a softmax over channels, and no attention
    ("convnext_atto", None, 0),
]


@pytest.mark.parametrize(("name", "size", "count"), TIMM, ids=[name for name, _, _ in TIMM])
def test_timm_by_its_kernel_and_by_hand(name: str, size: int | None, count: int) -> None:
    timm = package("timm")
    torch.manual_seed(0)
    image, seen = torch.randn(1, 3, size or 224, size or 224), []
    for fused in (True, False):
        timm.layers.set_fused_attn(fused)
        torch.manual_seed(0)
        seen.append(watched(timm.create_model(name, **{} if size is None else {"img_size": size}), image))
    assert len(seen[0]) == len(seen[1]) == count
    for fused_call, by_hand in zip(*seen, strict=True):
        assert fused_call.path == by_hand.path
        assert float((fused_call.weights[...] - by_hand.weights[...]).abs().max()) <= 5e-6
    timm.layers.set_fused_attn(True)


@pytest.mark.parametrize(("name", "count"), [("vit_b_32", 12), ("swin_t", 12), ("swin_v2_t", 12)])
def test_torchvision(name: str, count: int) -> None:
    models = package("torchvision").models
    size = {"image_size": 64} if name.startswith("vit") else {}
    calls = watched(getattr(models, name)(**size), torch.randn(1, 3, 64, 64))
    assert len(calls) == count
    for call in calls:
        assert float((call.weights[...].double().sum(-1) - 1).abs().max()) < 1e-5


X_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "by hand": {},
    "flash": {"attn_flash": True},
    "rotary, q-k norm": {"rotary_pos_emb": True, "attn_qk_norm": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 4},
    "alibi, flash": {"alibi_pos_bias": True, "alibi_num_heads": 4, "attn_flash": True},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "top-k": {"attn_sparse_topk": 4},
    "one key head": {"attn_one_kv_head": True},
    "memory keys": {"attn_num_mem_kv": 3},
    "gated values": {"attn_gate_values": True},
    "T5's bias": {"rel_pos_bias": True},
}


@pytest.mark.parametrize("options", X_TRANSFORMERS.values(), ids=X_TRANSFORMERS)
def test_x_transformers(options: dict[str, Any]) -> None:
    own = package("x_transformers")
    layers = own.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
    model = own.TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers)
    calls = watched(model, torch.randint(0, 50, (2, 12)))
    assert [call.source.shape for call in calls] == [(2, 4, 12, 12 + options.get("attn_num_mem_kv", 0))] * 2


def test_open_clip() -> None:
    model = package("open_clip").create_model("ViT-B-32", pretrained=None)
    calls = watched(model.visual, torch.randn(1, 3, 224, 224))
    assert [call.source.shape for call in calls] == [(1, 12, 50, 50)] * 12
    calls = watched(model.transformer, torch.randn(1, 77, 512))
    assert [call.source.shape for call in calls] == [(1, 8, 77, 77)] * 12
