"""Open a LoRA adapter of PEFT (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models") on its model."""

import importlib.util
import os
import warnings
from pathlib import Path

from regard.errors import RegardError
from regard.files import check_regular
from regard.json_files import read_json
from regard.model_files.folder import ADAPTER
from regard.model_files.quiet import quiet
from regard.models.model import Model

WEIGHTS = "adapter_model.safetensors"


def merge_adapter(opened: Model, folder: str | os.PathLike[str]) -> Model:
    """Add an adapter to the weights of the model that it adapts, which stays in memory once.

    Contributions and attribution then see one output projection, as they do in any model.

    Raises:
        RegardError: peft is missing, the folder holds no LoRA adapter in safetensors, or it is another model's.
    """
    place, called = Path(folder), repr(os.fspath(folder))
    if importlib.util.find_spec("peft") is None:
        raise RegardError(f"adapter {called}: reading it needs peft: pip install 'regard[adapters]'")
    if not (place / ADAPTER).is_file():
        raise RegardError(f"adapter {called}: there is no {ADAPTER}, it is no folder of an adapter")
    kind = read_json(place / ADAPTER, infinite=True).get("peft_type")
    if kind != "LORA":
        raise RegardError(f"adapter {called}: its peft_type is {kind!r}, needs LORA, which can be added to weights")
    if not os.path.lexists(place / WEIGHTS):
        raise RegardError(f"adapter {called}: there is no {WEIGHTS}; weights are read from safetensors alone")
    check_regular(place / WEIGHTS, "weights")
    import peft

    try:
        with quiet(), warnings.catch_warnings(action="ignore"):  # what is missing or unused is looked at below
            config = peft.PeftConfig.from_pretrained(str(place))
            config.inference_mode = True
            wrapped = peft.PeftModel(opened.model, config)
            found = wrapped.load_adapter(str(place), "default", use_safetensors=True)
            lacking = [name for name in found.missing_keys if "lora_" in name]
            odd = [*found.unexpected_keys, *lacking]
            model = wrapped.merge_and_unload(safe_merge=True)
    except Exception as error:  # peft raises whatever a config or a shape leads it to
        lines = str(error).split("\n") if str(error) else [type(error).__name__]
        reason = lines[:2] if lines[0].endswith(":") else lines[:1]  # the reason stands behind its heading
        told = " ".join(line.strip() for line in reason)
        raise RegardError(f"adapter {called} does not fit {opened.name}: {told}") from error
    if odd:
        raise RegardError(f"adapter {called} does not fit {opened.name}: {len(odd)} of its tensors, first {odd[0]!r}")
    note = f"the LoRA adapter {place.name!r} (rank {config.r}) is added to the weights of {opened.name}"
    return Model(
        model.eval(), opened.tokenizer, name=f"{opened.name} + {Path(os.path.abspath(place)).name}",
        notes=(*opened.notes, note), pooling=opened.pooling, image_processor=opened.image_processor,
    )  # fmt: skip
