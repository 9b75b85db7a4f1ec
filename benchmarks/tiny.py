"""A tiny random model of any family of transformers, and something that it reads: ids, pixels or sound."""

import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

LENGTH, TARGET, LAYERS = 13, 7, 4
# Sizes that make any configuration tiny; a name that a configuration lacks is left alone.
SIZES: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 32,
    "word_embed_proj_dim": 32, "num_hidden_layers": LAYERS, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2, "num_encoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "intermediate_size": 48,
    "d_ff": 48, "ffn_dim": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "hidden_dim": 48, "n_inner": 48,
    "ffn_hidden_size": 48, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "max_position_embeddings": 64, "n_positions": 64, "max_target_positions": 64, "max_source_positions": 64,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0,
    "hidden_dropout_prob": 0.0, "embedding_dim": 32, "image_size": 16, "patch_size": 4,
    "depth": 2, "embed_dim": 32, "mamba_n_heads": 8, "mamba_d_state": 8, "mamba_d_head": 8, "mamba_n_groups": 1,
    "num_codebooks": 2, "audio_vocab_size": 97, "num_attention_groups": 2, "decoder_hidden_size": 32,
    "encoder_hidden_size": 32, "projection_dim": 32, "conv_dim": 32, "linear_num_value_heads": 4,
    "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "text_embed_dim": 32,
    "num_experts_per_token": 2, "encoder_hash_byte_group_vocab": 97, "num_expert_group": 1, "moe_num_experts": 4,
    "moe_k": 2, "n_shared_experts": 1,
}  # fmt: skip
LISTS = ("layer_types", "layers_block_type", "mlp_layer_types", "layer_type_list")  # one entry for each layer
# Families that split rotary angles into (time, height, width) by default, by half the width that they turn.
ANGLES = {
    4: ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "paddleocr_vl_text", "glm4v_text", "glm_image_text",
        "glm_ocr_text"),
    2: ("glm4v_moe_text",),
}  # fmt: skip
# What single families need beyond that, by the name of the configuration (or part of one) that it goes into.
PIXELS = {"image_size": 16, "patch_size": 4}
SMALL = {"vocab_size": 97, "hidden_size": 32, "num_attention_heads": 4}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1}
FITS: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2, "shared_intermediate_size": 16},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    "zamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "num_key_value_heads": 4,
        "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "zamba2": {
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "hybrid_layer_ids": [1, 3],
        "num_key_value_heads": 4,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "kv_channels": 8,
        "mamba_headdim": 8,
        "num_query_groups": 4,
    },
    "timm_backbone": {"backbone": "resnet10t"},
    "codegen": {"rotary_dim": 4},
    "gptj": {"rotary_dim": 4},
    "gpt_neo": {"num_layers": 4, "attention_types": [[["global", "local"], 2]], "window_size": 5},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4, "visual_embed": False},
    "lilt": {"hidden_size": 48, "channel_shrink_ratio": 4},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "dots1": EXPERTS,
    "deepseek_ocr2_text": EXPERTS
    | {
        "n_group": 1,
        "topk_group": 1,
        "num_key_value_heads": 4,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
    },
    "unlimited_ocr_text": {"num_key_value_heads": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mistral4": {"head_dim": None},
    "mllama_text_model": {"cross_attention_layers": [2]},
    "csm": {"text_vocab_size": 97, "codebook_pad_token_id": 3, "codebook_eos_token_id": 4},
    "csm_depth_decoder_model": {"backbone_hidden_size": 32},
    "gemma3n_text": {
        "num_kv_shared_layers": 0,
        "vocab_size_per_layer_input": 97,
        "hidden_size_per_layer_input": 8,
        "laurel_rank": 8,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "intermediate_size": [48] * 4,
        "activation_sparsity_pattern": [0.0] * 4,
    },
    "inkling2_text": {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 8},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [16, 16]},
    "big_bird": {"attention_type": "original_full"},
    "mamba2": {"num_heads": 8},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 16,
        "indexer_compress_ratio": 2,
        "ngram_vocab_size_base": 97,
    },
    "cohere_compass_text": {
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 1e4} for kind in ("full_attention", "sliding_attention")
        }
    },
    "bridgetower_vision_model": {"hidden_size": 64, "num_hidden_layers": 2},
    "clvp_encoder": {"projection_dim": 32, "use_rotary_embedding": False},
    "longformer": {"attention_window": 4},
    "led": {"attention_window": 4},
    "hunyuan_vl_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 1, 1]}},
}


class UnfitError(Exception):
    """No model of the family could be made or run here."""


def make(family: str) -> tuple[Any, dict[str, Tensor]]:
    """A tiny random model and the tensors that it reads; one that reads ids where the family has one.

    Raises:
        UnfitError: none could be made or run; the first reason is told.
        LookupError: none reads ids, pixels or sound.
    """
    config = shrink(CONFIG_MAPPING[family]())
    reasons: list[str] = []
    known = False
    for reads in ("ids", "other", "both"):
        for build in builds(config):
            try:
                model = build()
            except Exception as error:
                reasons.append(told(error))
                continue
            for inputs in readings(model, reads):
                known = True
                try:
                    run(model, inputs)
                except Exception as error:
                    reasons.append(told(error))
                    continue
                return model, inputs
    if not known and not reasons:
        raise LookupError
    raise UnfitError(reasons[0])


def run(model: Any, inputs: dict[str, Tensor], **options: Any) -> Any:
    """A forward pass of a model as it is."""
    if "use_cache" in inspect.signature(model.forward).parameters:
        options["use_cache"] = False
    with torch.no_grad():
        return model(**inputs, **options)


def builds(config: Any) -> Iterator[Any]:
    """Functions that make a model of a configuration: by the auto classes, then by whatever class takes it."""
    for mapping in (transformers.AutoModel, transformers.AutoModelForCausalLM, transformers.AutoModelForSeq2SeqLM):
        if type(config) in mapping._model_mapping:
            yield lambda mapping=mapping: seeded(mapping.from_config, config)
    try:
        module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
    except ImportError:
        return
    for found in vars(module).values():
        if (
            inspect.isclass(found)
            and issubclass(found, transformers.PreTrainedModel)
            and found.__module__ == module.__name__
            and found.config_class is type(config)
            and "PreTrained" not in found.__name__
        ):
            yield lambda found=found: seeded(found._from_config, config)


def seeded(build: Any, config: Any) -> Any:
    """The model with weights that are the same in each run."""
    torch.manual_seed(0)
    return build(config).eval()


def readings(model: Any, kind: str) -> Iterator[dict[str, Tensor]]:
    """What a model may read: ids, or else pixels or sound in the shapes that are usual, or both ids and pixels."""
    takes = inspect.signature(model.forward).parameters
    pair = model.config.is_encoder_decoder if "decoder_input_ids" in takes else False
    target = {"decoder_input_ids": torch.randint(3, 90, (1, TARGET))} if pair else {}
    if kind == "both":
        if "input_ids" in takes and "pixel_values" in takes:
            for shape in shapes("pixel_values", getattr(model.config, "vision_config", None) or model.config):
                yield {"input_ids": torch.randint(3, 90, (1, LENGTH)), "pixel_values": torch.randn(shape)}
        return
    if kind == "ids":
        try:
            reads = "input_ids" in takes and model.get_input_embeddings() is not None
        except NotImplementedError:  # two towers, or none that reads ids
            reads = False
        if reads:
            yield {"input_ids": torch.randint(3, 90, (1, LENGTH)), **target}
        return
    for name in ("pixel_values", "pixel_values_videos", "input_features", "input_values"):
        if name in takes:
            for shape in shapes(name, model.config):
                yield {name: torch.randn(shape), **target}


def shapes(name: str, config: Any) -> Iterator[tuple[int, ...]]:
    """The shapes that one item of pixels or sound may have."""
    if name.startswith("pixel"):
        size = first(config, "image_size", "img_size") or 64
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        channels = first(config, "num_channels", "in_channels", "in_chans") or 3
        frames = first(config, "num_frames", "frames_per_clip") or 4
        yield 1, channels, height, width
        yield 1, frames, channels, height, width
        yield 1, channels, 2 * height, 2 * width
        yield 1, 1, channels, height, width
        return
    bins = first(config, "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim") or 80
    source = first(config, "max_source_positions") or 64
    length = first(config, "max_length") or 100
    yield from ((1, bins, 2 * source), (1, length, bins), (1, 100, bins), (1, bins, 100))
    for count in (4000, 16000):
        yield 1, count
        yield 1, 1, count


def first(config: Any, *names: str) -> Any:
    """The first of some settings that there is."""
    return next((found for name in names if (found := getattr(config, name, None)) is not None), None)


def shrink(config: Any) -> Any:
    """The same kind of configuration with tiny sizes, its parts too."""
    given, kind = config.to_dict(), config.model_type
    changes: dict[str, Any] = {name: value for name, value in SIZES.items() if name in given}
    for name in ("image_size", "patch_size"):
        if given.get(name) is None:
            changes.pop(name, None)
        if isinstance(given.get(name), (list, tuple)):
            changes[name] = [SIZES[name]] * len(given[name])
    if "kv_lora_rank" in given:  # latent attention: every head has keys of its own
        changes["num_key_value_heads"] = SIZES["num_attention_heads"]
    for half, kinds in ANGLES.items():
        if kind in kinds:
            rope = given.get("rope_parameters") or {"rope_type": "default", "rope_theta": 10000.0}
            changes["rope_parameters"] = rope | {"mrope_section": [1, 1, half - 2]}
    rope = given.get("rope_parameters")
    if isinstance(rope, dict) and "mrope_section" in rope and "rope_parameters" not in changes:
        changes["rope_parameters"] = rope | {"mrope_section": [1, 1, 2]}
    for name in LISTS:
        if isinstance(given.get(name), list) and given[name]:  # every kind of layer, in turn
            kinds_of = list(dict.fromkeys(given[name]))
            changes[name] = list(itertools.islice(itertools.cycle(kinds_of), LAYERS))
    for name in getattr(config, "sub_configs", ()):
        part = getattr(config, name, None)
        if isinstance(part, transformers.PreTrainedConfig):
            changes[name] = shrink(part).to_dict()
    changes |= FITS.get(kind, {})
    try:
        return type(config)(**changes)
    except Exception:  # a family that ties sizes together: those that it takes, one by one
        kept: dict[str, Any] = {}
        for name, value in (*changes.items(), *changes.items()):  # twice: some fit only beside later ones
            try:
                type(config)(**(kept | {name: value}))
            except Exception:
                continue
            kept[name] = value
        return type(config)(**kept)


def told(error: BaseException) -> str:
    """An error in one short line."""
    lines = str(error).strip().splitlines()
    first = re.sub(r" from '[^']*'", "", lines[0] if lines else "")  # modules say which file of this machine they are
    return f"{type(error).__name__}: {first[:160]}"
