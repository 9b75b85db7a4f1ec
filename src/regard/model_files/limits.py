"""Check a checkpoint's files and their headers before a model is built from them.

regard reads only safetensors, because they can't contain code. transformers opens any file that an index names, even
pickles and files in other folders, so the index is checked first. `size_limit.Budget` limits memory.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from regard.errors import RegardError, first_line
from regard.files import check_regular, read_json

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
PLAIN = ("F64", "F32", "F16", "BF16", "I64", "BOOL")  # dtypes of buffers and of weights that aren't quantised
HALF = ("F16", "BF16")
MXFP4 = ("_blocks", "_scales")  # name suffixes of the two U8 tensors that store an MXFP4 weight


@dataclass(frozen=True)
class CheckpointSizes:
    """A checkpoint's sizes. tensors, numbers: how many. plain: whether no weight of safetensors is quantised.

    files: its safetensors files. bytes: their size. half: whether some weights are in half precision, in MXFP4 or
    quantised in a GGUF file. mxfp4: whether some weights are in MXFP4 and none is quantised in another way.
    """

    tensors: int
    numbers: int
    plain: bool = True
    files: tuple[Path, ...] = field(default=(), compare=False)
    bytes: int = field(default=0, compare=False)
    half: bool = field(default=False, compare=False)
    mxfp4: bool = field(default=False, compare=False)


def weight_files(folder: Path, config: Mapping[str, Any]) -> list[Path]:
    """Return the paths of the safetensors files that a model folder's config or index names."""
    name = config.get("transformers_weights") or (SINGLE if os.path.lexists(folder / SINGLE) else INDEX)
    location = repr(str(folder / "config.json"))
    if not isinstance(name, str) or not re.fullmatch(r"[^./\\:][^/\\:]*\.safetensors(\.index\.json)?", name):
        raise RegardError(f"{location}: transformers_weights is {name!r}, expected the name of a safetensors file")
    file = folder / name
    if name == INDEX and not os.path.lexists(file):
        pickled = sorted(file.name for kind in PICKLES for file in folder.glob(kind))
        if pickled:
            raise RegardError(f"{str(folder)!r}: the only weights are pickled ({pickled[0]}): use safetensors")
        raise RegardError(f"{str(folder)!r}: no weights, expected {SINGLE}")
    return [folder / shard for shard in files_in_weight_index(file)] if name.endswith(".json") else [file]


def files_in_weight_index(index: Path) -> list[str]:
    """Read the file names in a checkpoint's index. Raises RegardError unless each is a plain .safetensors name."""
    file_of_tensor = read_json(index, "index").get("weight_map")
    if not isinstance(file_of_tensor, dict) or not file_of_tensor:
        raise RegardError(f"{str(index)!r}: it has no weight_map, which names the file of each tensor")
    for tensor, file in file_of_tensor.items():
        if not isinstance(file, str) or not file.endswith(".safetensors"):
            raise RegardError(f"{str(index)!r}: tensor {tensor!r} is in {file!r}, expected a safetensors file")
        if any(character in file for character in "/\\:\0") or file.startswith("."):  # could leave the folder
            raise RegardError(f"{str(index)!r}: weights are in {file!r}, expected the name of a file in the folder")
    return sorted(set(file_of_tensor.values()))


def read_sizes(files: Sequence[Path]) -> CheckpointSizes:
    """Count the tensors, numbers and bytes of safetensors files from their headers."""
    entries: list[tuple[str, str, int]] = []  # name, dtype, numbers
    for file in files:
        check_regular(file, "weights")
        try:
            with safe_open(file, "numpy") as checkpoint:
                for name in checkpoint.keys():  # noqa: SIM118
                    tensor = checkpoint.get_slice(name)
                    entries.append((name, tensor.get_dtype(), math.prod(tensor.get_shape())))
        except (OSError, SafetensorError) as error:
            raise RegardError(f"{str(file)!r} is truncated or not a safetensors file ({first_line(error)})") from error
    packed = [entry for entry in entries if entry[1] == "U8" and entry[0].endswith(MXFP4)]
    quantised = [entry for entry in entries if entry[1] not in PLAIN]
    return CheckpointSizes(
        len(entries),
        sum(count for _, _, count in [*entries, *packed]),
        plain=not quantised,
        files=tuple(files),
        bytes=sum(file.stat().st_size for file in files),
        half=bool(packed) or any(dtype in HALF for _, dtype, _ in entries),
        mxfp4=bool(packed) and quantised == packed,
    )


def check_quantisation(config: Mapping[str, Any], sizes: CheckpointSizes, location: str) -> None:
    """Check that transformers knows a config's quantisation method, and that the checkpoint is quantised."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    for quantisation in (part["quantization_config"] for part in parts if part.get("quantization_config") is not None):
        if not isinstance(quantisation, dict):
            raise RegardError(f"{location}: quantization_config is {quantisation!r}, expected an object")
        from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING as KNOWN  # the import takes a second

        kind = quantisation.get("quant_method")
        if kind is None and any(quantisation.get(f"load_in_{bits}bit") for bits in (4, 8)):
            kind = "bitsandbytes"
        if kind not in ("bitsandbytes", *KNOWN):
            raise RegardError(
                f"{location}: quantization_config names the method {kind!r}, which the installed transformers doesn't "
                "support, so its weights can't be read"
            )
        if sizes.plain and quantisation.get("quantization_mode") != "online":
            raise RegardError(
                f"{location}: quantization_config names the method {kind!r}, but no tensor of its checkpoint is "
                "quantised: one of them belongs to another model"
            )
