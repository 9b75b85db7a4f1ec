"""Open a LoRA adapter of PEFT (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models") on its model."""

import copy
import importlib.util
import os
import warnings
from pathlib import Path

import torch

from regard.errors import RegardError
from regard.files import check_regular, read_json
from regard.model_files.folder import ADAPTER
from regard.model_files.suppress_warnings import quiet
from regard.models.model import Model

WEIGHTS = "adapter_model.safetensors"
# The entries of a config that say what is added to the weights. peft gets these alone, for others import modules, read
# files or change what layers compute. UNUSED ones may say anything, all others have to say nothing.
USED_NAMES = """
    r lora_alpha target_modules exclude_modules target_parameters layers_to_transform layers_pattern rank_pattern
    alpha_pattern fan_in_fan_out bias lora_bias use_rslora use_dora modules_to_save trainable_token_indices
    ensure_weight_tying init_lora_weights
"""
UNUSED_NAMES = """
    peft_type peft_version task_type auto_mapping base_model_name_or_path revision inference_mode lora_dropout
    eva_config
"""
USED, UNUSED = frozenset(USED_NAMES.split()), frozenset(UNUSED_NAMES.split())
FROM_BASE = ("pissa", "olora")  # beginnings that peft computes from the weights, and takes out of them
BEGINNINGS = (None, True, False, "gaussian", "orthogonal", "eva", "mica", *FROM_BASE)  # others need other files


def merge_adapter(opened: Model, folder: str | os.PathLike[str]) -> Model:
    """Add an adapter to the weights of the model that it adapts, which stays in memory once.

    Contributions and attribution then see one output projection, as they do in any model.
    """
    place, called = Path(folder), repr(os.fspath(folder))
    if importlib.util.find_spec("peft") is None:
        raise RegardError(f"adapter {called}: reading it needs peft: pip install 'regard[adapters]'")
    for file in (ADAPTER, WEIGHTS):
        if not os.path.lexists(place / file):
            raise RegardError(f"adapter {called}: there is no {file}: needs the folder of an adapter, in safetensors")
    import peft
    from peft.tuners.tuners_utils import BaseTunerLayer

    settings = read_json(place / ADAPTER)
    if (kind := settings.get("peft_type")) != "LORA":
        raise RegardError(f"adapter {called}: its peft_type is {str(kind)[:40]!r}, needs LORA")
    plain = peft.LoraConfig().to_dict()
    beginning = settings.get("init_lora_weights")
    more = ["init_lora_weights"] * (beginning not in BEGINNINGS)
    others = {name: value for name, value in settings.items() if name not in USED | UNUSED}
    more += [name for name, value in others.items() if value and value != plain.get(name)]
    if more:
        problem = f"{more[0][:40]!r} is {str(settings[more[0]])[:40]!r} in its {ADAPTER}"
        raise RegardError(f"adapter {called}: {problem}, which is not supported: needs plain LoRA or DoRA")
    check_regular(place / WEIGHTS, "weights")
    try:
        with quiet(), warnings.catch_warnings(action="ignore"):  # what is missing or unused is looked at below
            config = peft.LoraConfig(**{name: settings[name] for name in USED & settings.keys()}, inference_mode=True)
            empty = beginning not in FROM_BASE  # without memory for what is read next, whatever rank the config says
            with torch.device("meta" if empty else "cpu"):
                wrapped = peft.PeftModel(opened.model, config)
            result = wrapped.load_adapter(str(place), "default", use_safetensors=True, low_cpu_mem_usage=empty)
            if odd := [*result.unexpected_keys, *result.missing_keys]:
                raise RegardError(f"{len(odd)} of its tensors, first {odd[0]!r}")
            tied = getattr(opened.model.config, "tie_word_embeddings", False)
            for layer in list(wrapped.modules()):
                if isinstance(layer, BaseTunerLayer):  # other modules that share its weight keep theirs as it is
                    layer.base_layer = copy.deepcopy(layer.base_layer)
            model = wrapped.merge_and_unload(safe_merge=True)
            if tied:  # UMT5 scales its logits by this entry, which peft sets to False
                model.config.tie_word_embeddings = True
    except Exception as error:  # peft raises whatever a config or a shape leads it to
        problem = " ".join(str(error).split())[:300] or type(error).__name__
        raise RegardError(f"adapter {called} does not fit {opened.name}: {problem}") from error
    note = f"The LoRA adapter {place.name!r} (rank {config.r}) was added to the weights of {opened.name}."
    return Model(
        model.eval(), opened.tokenizer, name=f"{opened.name} + {Path(os.path.abspath(place)).name}",
        notes=(*opened.notes, note), image_processor=opened.image_processor,
    )  # fmt: skip
