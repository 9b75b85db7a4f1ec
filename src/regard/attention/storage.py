"""An attention map as plain tensors and a small JSON description, and back: what files of maps are made of.

Kept is what the weights come from: query, key, bias, sinks and mask, each in its own dtype. Memory on disk is O(L + S)
wherever it was in memory; the weights are computed again, by the same routine, when the loaded map is asked for them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Bool
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.attention.edges import Edges
from regard.attention.map import AttentionMap
from regard.attention.masks import Mask
from regard.attention.tiles import Rule
from regard.errors import RegardError
from regard.files import whole

VERSION = 1
WITH_EDGES = 2  # the version of maps that lost edges: a reader of version 1 would show weights that are not theirs
FUNCTION_LIMIT = 1 << 24  # scores up to which a function's answers are written out: 16 MiB, a map of 4096 × 4096


def pack(map: AttentionMap) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, description) of a map: contiguous tensors that share no memory, and what JSON can hold.

    Many maps go into one file by giving each its own prefix to the tensors' names.

    Raises:
        ValueError: the mask is a function of positions and too large to be written out.
    """
    tensors, description = describe(map)
    return _apart(tensors), description


def describe(map: AttentionMap) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `pack` gives, with the map's own tensors by reference: nothing is copied yet.

    Raises:
        ValueError: the mask is a function of positions and too large to be written out.
    """
    rule = map.rule
    tensors = {"query": map.query, "key": map.key}
    if rule.bias is not None:
        tensors["bias"] = _unexpanded(rule.bias)
    if rule.sinks is not None:
        tensors["sinks"] = rule.sinks
    description: dict[str, Any] = {
        "version": VERSION,
        "offset": map.offset,
        "ndim": map.ndim,
        "scale": rule.scale,
        "softcap": rule.softcap,
        "mask": None,
    }
    if rule.mask is not None:
        dense = rule.mask.dense + _written_out(map, rule.mask)
        description["mask"] = {"low": rule.mask.low, "high": rule.mask.high, "dense": len(dense)}
        if rule.mask.removed:
            description["version"] = WITH_EDGES
            description["mask"]["removed"] = [edges.described() for edges in rule.mask.removed]
        tensors |= {f"mask.dense.{n}": _unexpanded(tensor) for n, tensor in enumerate(dense)}
        if rule.mask.keys is not None:
            tensors["mask.keys"] = rule.mask.keys
    return tensors, description


def unpack(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> AttentionMap:
    """The map that `pack` took apart.

    Raises:
        ValueError: a later version's description, a tensor that is missing, or edges of a map of another shape.
    """
    if description.get("version") not in (VERSION, WITH_EDGES):
        needs = f"needs version {VERSION} or {WITH_EDGES}"
        raise ValueError(f"attention map: given version {description.get('version')!r}, {needs}")
    told = description["mask"]
    needed = ["query", "key", *(f"mask.dense.{n}" for n in range(0 if told is None else told["dense"]))]
    missing = [name for name in needed if name not in tensors]
    if missing:
        raise ValueError(f"attention map: needs a tensor named {missing[0]!r}, given {', '.join(tensors) or 'none'}")
    mask: Mask | None = None
    if told is not None:
        dense = tuple(tensors[f"mask.dense.{n}"] for n in range(told["dense"]))
        removed = tuple(Edges.of(each) for each in told.get("removed", ()))
        shape = (*tensors["query"].shape[:3], tensors["key"].shape[2])
        for edges in removed:
            if edges.shape != shape:
                raise ValueError(
                    f"attention map: its edges are of a map of shape {edges.shape}, its tensors of {shape}"
                )
        mask = Mask(told["low"], told["high"], tensors.get("mask.keys"), dense, removed=removed)
    rule = Rule(description["scale"], description["softcap"], tensors.get("bias"), mask, tensors.get("sinks"))
    return AttentionMap(tensors["query"], tensors["key"], rule, offset=description["offset"], ndim=description["ndim"])


def save(map: AttentionMap, file: str | Path) -> None:
    """Write one map as a safetensors file, whole or not at all."""
    tensors, description = pack(map)
    with whole(file) as part:
        save_file(tensors, part, metadata={"regard.attention_map": json.dumps(description)})


def load(file: str | Path) -> AttentionMap:
    """Read a map that `save` wrote, onto the CPU.

    Raises:
        RegardError: there is no such file, it is no map, or one of a later version.
    """
    if not Path(file).is_file():
        raise RegardError(f"{file}: there is no such file")
    try:
        with safe_open(file, framework="pt") as opened:
            told = (opened.metadata() or {}).get("regard.attention_map")
            names = opened.keys()
            tensors = {name: opened.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise RegardError(f"{file}: no attention map ({error})") from error
    if told is None:
        raise RegardError(f"{file}: a safetensors file, but no attention map: `AttentionMap.save` writes one")
    try:
        return unpack(tensors, json.loads(told))
    except ValueError as error:
        raise RegardError(f"{file}: {error}") from error


def _written_out(map: AttentionMap, mask: Mask) -> tuple[Bool[Tensor, "1 1 L S"], ...]:
    """What the mask's functions answer, as one boolean tensor; nothing where there are none."""
    if not mask.functions:
        return ()
    length, size = map.query.shape[2], map.key.shape[2]
    if length * size > FUNCTION_LIMIT:
        raise ValueError(
            f"mask: given a function of positions over {length} × {size} scores, which cannot be saved; it needs to be "
            f"at most {FUNCTION_LIMIT} scores to be written out, or a mask of causal, window, padding and dense parts"
        )
    return (Mask(functions=mask.functions).materialise(1, 1, length, size, map.device),)


def _unexpanded(tensor: Tensor) -> Tensor:
    """A broadcastable tensor with the axes that were only expanded taken back to size 1."""
    for axis in range(tensor.ndim):
        if tensor.stride(axis) == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors, copied where two lie in one storage: a safetensors file refuses to hold such."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        tensor = tensor.contiguous()
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in seen and tensor.numel() else tensor
        seen.add(place)
    return apart
