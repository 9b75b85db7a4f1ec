"""Tiny random pipelines of diffusers, one a kind, each with the tokenizers and text encoders that its kind has."""

from typing import Any

import torch
import transformers

LETTERS = "abcdefghijklmnopqrstuvwxyz,."
MERGES = ["c a", "ca t</w>", "m a", "ma t</w>", "o n</w>", "r i", "ri v", "riv e", "rive r</w>"]
LENGTH = 13  # of a prompt, padded


def clip_tokenizer() -> Any:
    """CLIP's, with a few words."""
    pieces = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), *(each.replace(" ", "") for each in MERGES)]
    vocabulary = {piece: n for n, piece in enumerate([*pieces, "<|startoftext|>", "<|endoftext|>"])}
    merges = [tuple(each.split()) for each in MERGES]
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=LENGTH)


def t5_tokenizer() -> Any:
    """T5's, with a few words and letters."""
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁a", "▁cat", "▁on", "▁the", "▁mat", "▁river", *LETTERS]
    vocabulary = [(piece, -float(n)) for n, piece in enumerate(pieces)]
    return transformers.T5Tokenizer(vocab=vocabulary, extra_ids=0, model_max_length=LENGTH)


def clip_encoder(width: int, projected: bool = False) -> Any:
    size = len(clip_tokenizer())
    config = transformers.CLIPTextConfig(
        vocab_size=size, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=LENGTH, projection_dim=width, bos_token_id=size - 2, eos_token_id=size - 1,
    )  # fmt: skip
    return (transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel)(config).eval()


def t5_encoder(width: int) -> Any:
    config = transformers.T5Config(
        vocab_size=len(t5_tokenizer()), d_model=width, d_kv=4, d_ff=16, num_layers=1, num_heads=2
    )
    return transformers.T5EncoderModel(config).eval()


def vae(channels: int = 4) -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 8), in_channels=3, out_channels=3, norm_num_groups=2, latent_channels=channels,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, shift_factor=0.0,
    ).eval()  # fmt: skip


def stable_diffusion() -> Any:
    """Make a U-Net with cross-attention to CLIP's states at two resolutions."""
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel

    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, block_out_channels=(8, 16), layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=20, attention_head_dim=4, norm_num_groups=4,
    ).eval()  # fmt: skip
    return StableDiffusionPipeline(
        vae(), clip_encoder(20), clip_tokenizer(), unet, DDIMScheduler(clip_sample=False), None, None,
        requires_safety_checker=False,
    )  # fmt: skip


def add_ip_adapter(pipe: Any, tokens: int) -> dict[str, Any]:
    """Let the U-Net of `stable_diffusion` look at so many tokens of a picture, too; returns the options to paint so."""
    torch.manual_seed(1)
    unet, width = pipe.unet, pipe.unet.config.cross_attention_dim
    crossed = [name.removesuffix(".processor") for name in unet.attn_processors if "attn2" in name]
    keys = {f"{2 * n + 1}.to_{kind}_ip.weight": torch.randn(unet.get_submodule(name).inner_dim, width)
            for n, name in enumerate(crossed) for kind in "kv"}  # fmt: skip
    picture = {"proj.weight": torch.randn(width * tokens, 6), "proj.bias": torch.zeros(width * tokens)}
    picture |= {"norm.weight": torch.ones(width), "norm.bias": torch.zeros(width)}
    unet._load_ip_adapter_weights([{"image_proj": picture, "ip_adapter": keys}])
    return {"ip_adapter_image_embeds": [torch.randn(2, 1, 6)]}


def pixart() -> Any:
    """Make a transformer with cross-attention to T5's states, padding masked."""
    from diffusers import DPMSolverMultistepScheduler, PixArtAlphaPipeline, PixArtTransformer2DModel

    torch.manual_seed(0)
    transformer = PixArtTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=2,
        cross_attention_dim=16, caption_channels=12, sample_size=8, norm_num_groups=1, use_additional_conditions=False,
    ).eval()  # fmt: skip
    return PixArtAlphaPipeline(t5_tokenizer(), t5_encoder(12), vae(), transformer, DPMSolverMultistepScheduler())


def stable_diffusion_3() -> Any:
    """Make joint attention of a picture and two texts, CLIP's and T5's, the picture first."""
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline

    torch.manual_seed(0)
    transformer = SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=2,
        joint_attention_dim=20, caption_projection_dim=16, pooled_projection_dim=20, out_channels=4,
        pos_embed_max_size=8,
    ).eval()  # fmt: skip
    return StableDiffusion3Pipeline(
        transformer, FlowMatchEulerDiscreteScheduler(), vae(), clip_encoder(10, True), clip_tokenizer(),
        clip_encoder(10, True), clip_tokenizer(), t5_encoder(20), t5_tokenizer(),
    )  # fmt: skip


def flux() -> Any:
    """Make joint attention of T5's text and a picture, the text first, in blocks of two streams and of one."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    torch.manual_seed(0)
    transformer = FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=20, pooled_projection_dim=10, axes_dims_rope=(4, 4, 8),
    ).eval()  # fmt: skip
    return FluxPipeline(
        FlowMatchEulerDiscreteScheduler(), vae(1), clip_encoder(10), clip_tokenizer(), t5_encoder(20), t5_tokenizer(),
        transformer,
    )  # fmt: skip


def add_flux_ip_adapter(pipe: Any, tokens: int) -> dict[str, Any]:
    """Let the blocks of two streams of `flux` look at so many tokens of a picture, too; returns the options for it."""
    from diffusers.models.embeddings import ImageProjection, MultiIPAdapterImageProjection
    from diffusers.models.transformers.transformer_flux import FluxIPAdapterAttnProcessor

    torch.manual_seed(1)
    model = pipe.transformer
    model.set_attn_processor({
        name: each if name.startswith("single") else FluxIPAdapterAttnProcessor(32, 20, (tokens,))
        for name, each in model.attn_processors.items()
    })  # fmt: skip
    model.encoder_hid_proj = MultiIPAdapterImageProjection([ImageProjection(6, 20, tokens)])
    given = {"ip_adapter_image_embeds": torch.randn(1, 1, 6), "negative_ip_adapter_image_embeds": torch.zeros(1, 1, 6)}
    return {name: [each] for name, each in given.items()}
