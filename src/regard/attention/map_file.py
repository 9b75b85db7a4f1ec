"""An attention map as plain tensors and a small JSON description, and back: what files of maps are made of.

Kept is what the weights come from: query, key, bias, sinks and mask, each in its own dtype. Memory on disk is O(L + S)
wherever it was in memory; the weights are computed again, by the same routine, when the loaded map is asked for them.
What is read is held against what `attend` accepts: a file may come from anybody.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from safetensors.torch import save_file
from torch import Tensor

from regard.attention.edges import AXES, Edges
from regard.attention.map_inputs import MapInputs
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule, working_dtype
from regard.errors import RegardError
from regard.files import whole
from regard.tensor_files import digest_of, exactly, fill_in, finite, read, typed, unsound, whole_number

FORMAT = "regard attention map"
FUNCTION_LIMIT = 1 << 24  # scores up to which a function's answers are written out: 16 MiB, a map of 4096 × 4096
FURTHEST = 1 << 31  # positions: no sequence is so long, and differences of them are exact
MINUS_INFINITY = ("bias", "sinks")  # tensors in which -inf is a score: that of what is not attended to


def pack(map: MapInputs) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, description) of a map: contiguous tensors that share no memory, and what JSON can hold.

    Many maps go into one file by giving each its own prefix to the tensors' names.

    Raises:
        ValueError: the mask is a function of positions and too large to be written out.
    """
    tensors, description = describe(map)
    return _apart(tensors), description


def describe(map: MapInputs) -> tuple[dict[str, Tensor], dict[str, Any]]:
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
        "offset": map.offset,
        "ndim": map.ndim,
        "scale": rule.scale,
        "softcap": rule.softcap,
        "mask": None,
    }
    if rule.mask is not None:
        dense = rule.mask.dense + _written_out(map, rule.mask)
        removed = [edges.described() for edges in rule.mask.removed]
        description["mask"] = {"low": rule.mask.low, "high": rule.mask.high, "dense": len(dense), "removed": removed}
        tensors |= {f"mask.dense.{n}": _unexpanded(tensor) for n, tensor in enumerate(dense)}
        if rule.mask.keys is not None:
            tensors["mask.keys"] = rule.mask.keys
    return tensors, description


def unpack(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> MapInputs:
    """What the map that `pack` took apart is computed from: `AttentionMap.of` makes a map of it.

    Raises:
        RegardError: a value that `attend` would not accept, or tensors that are missing, too many, or do not fit.
    """
    told = exactly("attention map", description, ("offset", "ndim", "scale", "softcap", "mask"))
    if "query" not in tensors or "key" not in tensors:
        raise RegardError(f"attention map: needs tensors named 'query' and 'key', given {', '.join(tensors) or 'none'}")
    query, key = tensors["query"], tensors["key"]
    shape = _shape(query, key)
    offset = whole_number("offset", told["offset"], -FURTHEST, FURTHEST, None)
    ndim = whole_number("ndim", told["ndim"], 2, 4)
    if any(size != 1 for size in shape[: 4 - ndim]):
        raise RegardError(f"ndim is {ndim}, needs more to show a map of shape {shape}")
    scale = _score("scale", told["scale"], working_dtype(query))
    softcap = None if told["softcap"] is None else _score("softcap", told["softcap"], working_dtype(query))
    if softcap is not None and not torch.tensor(softcap, dtype=working_dtype(query)) > 0:
        raise RegardError(f"softcap is {softcap}, needs a number above 0")
    for name, tensor in tensors.items():
        _check_shape(name, tensor, shape)
    mask = _mask(told["mask"], tensors, shape)
    unknown = set(tensors) - {"query", "key", "bias", "sinks"} - _of_mask(told["mask"])
    if unknown:
        raise RegardError(f"attention map: its tensor {min(unknown)!r} is unknown")
    rule = ScoreRule(scale, softcap, tensors.get("bias"), mask, tensors.get("sinks"))
    return MapInputs(query, key, rule, offset=offset, ndim=ndim)


def save(map: MapInputs, file: str | Path) -> None:
    """Write one map as a safetensors file, whole or not at all.

    Raises:
        RegardError: it holds what is no number, or what could not be opened again.
    """
    tensors, description = pack(map)
    unpack(tensors, description)  # what is written will open
    for name, tensor in tensors.items():
        tensors[name] = tensor = tensor.cpu()
        why = unsound(tensor, name in MINUS_INFINITY)
        if why is not None:
            raise RegardError(f"attention map: its tensor {name!r} holds {why}: it cannot be saved")
    metadata = fill_in(FORMAT, {"map": description}, {name: digest_of(tensor) for name, tensor in tensors.items()})
    with whole(file) as part:
        save_file(tensors, part, metadata=metadata)


def load(file: str | Path, *, verify: bool = False) -> MapInputs:
    """Read a map that `save` wrote, onto the CPU; its tensors are checked when they are first read.

    verify: check them now.

    Raises:
        RegardError: there is no such file, it is no map, one of another version, or damaged.
    """
    path = Path(file)
    if not path.exists():
        raise RegardError(f"{file}: there is no such file")
    try:
        opened = read(path, FORMAT)
        told = exactly("its description", opened.description, ("map",))["map"]
        tensors = {
            name: opened.guarded(name, tensor, below=name in MINUS_INFINITY) for name, tensor in opened.tensors.items()
        }
        found = unpack(tensors, told)
    except OSError as error:
        raise RegardError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RegardError(f"{file}: no whole attention map: {str(error).splitlines()[0]}") from error
    if verify:
        opened.verify()
    return found


def _shape(query: Tensor, key: Tensor) -> tuple[int, int, int, int]:
    """(B, H, L, S) of a map, where its queries and keys fit each other."""
    for name, tensor in (("query", query), ("key", key)):
        if tensor.ndim != 4 or not tensor.is_floating_point():
            raise RegardError(
                f"attention map: {name} is {tensor.dtype} of shape {tuple(tensor.shape)}, needs 4 axes of "
                "floating-point numbers"
            )
    batch, heads, length, width = query.shape
    groups, size = key.shape[1:3]
    shared = groups == heads or (groups > 0 and heads % groups == 0)
    if (key.shape[0], key.shape[3], key.dtype) != (batch, width, query.dtype) or width == 0 or not shared:
        raise RegardError(
            f"attention map: a query of {query.dtype}, {tuple(query.shape)} and a key of {key.dtype}, "
            f"{tuple(key.shape)} do not fit"
        )
    return batch, heads, length, size


def _check_shape(name: str, tensor: Tensor, shape: tuple[int, int, int, int]) -> None:
    """Refuse a tensor beside query and key that does not fit them."""
    if name in ("query", "key"):
        return
    batch, heads, _, size = shape
    most: tuple[int, ...] = (heads,) if name == "sinks" else (batch, size) if name == "mask.keys" else shape
    fits = tensor.ndim == len(most) and all(a in (1, b) for a, b in zip(tensor.shape, most, strict=True))
    if name in ("sinks", "mask.keys"):
        fits = fits and tensor.shape[-1] == most[-1]
    if not fits:
        raise RegardError(f"attention map: {name} has shape {tuple(tensor.shape)}, needs to broadcast to {most}")
    if tensor.is_floating_point() == name.startswith("mask.") or tensor.is_complex():
        kind = "boolean" if name.startswith("mask.") else "floating-point"
        raise RegardError(f"attention map: {name} is {tensor.dtype}, needs {kind} values")


def _score(name: str, value: Any, dtype: torch.dtype) -> float:
    """A number that scores of a dtype may be multiplied by."""
    number: float = finite(name, value)
    if not math.isfinite(torch.tensor(number, dtype=dtype)):
        raise RegardError(f"{name} is {number}, which is more than {str(dtype).removeprefix('torch.')} holds")
    return number


def _of_mask(told: Mapping[str, Any] | None) -> set[str]:
    """The names of a mask's tensors; the count of them was checked before."""
    return set() if told is None else {"mask.keys", *(f"mask.dense.{n}" for n in range(told["dense"]))}


def _mask(told: Any, tensors: Mapping[str, Tensor], shape: tuple[int, int, int, int]) -> Mask | None:
    """The mask of a description; every count is held against the tensors that there are."""
    if told is None:
        return None
    exactly("mask", told, ("low", "high", "dense", "removed"))
    low, high = (whole_number(f"mask: {name}", told[name], -FURTHEST, FURTHEST, None) for name in ("low", "high"))
    there = sum(name.startswith("mask.dense.") for name in tensors)
    whole_number("mask: the number of its dense parts", told["dense"], there, there)
    missing = [n for n in range(there) if f"mask.dense.{n}" not in tensors]
    if missing:
        raise RegardError(f"mask: its tensor 'mask.dense.{missing[0]}' is missing")
    removed = tuple(_edges(each, shape) for each in typed("mask: removed", told["removed"], list))
    dense = tuple(tensors[f"mask.dense.{n}"] for n in range(there))
    return Mask(low, high, tensors.get("mask.keys"), dense, removed=removed)


def _edges(told: Any, shape: tuple[int, int, int, int]) -> Edges:
    """Edges of a map of a shape, whose numbers rise and are within it."""
    exactly("edges", told, ("shape", *AXES))
    there = [typed("edges: shape", size, int) for size in typed("edges: shape", told["shape"], list)[:5]]
    if there != list(shape):
        raise RegardError(f"edges are described of a map of shape {tuple(there)}, it has {shape}")
    for name, size in zip(AXES, shape, strict=True):
        before = -1
        for number in typed(f"edges: {name}", told[name], list, None) or ():
            before = whole_number(f"edges: one of {name}", number, before + 1, size - 1)
    return Edges.of(told)


def _written_out(map: MapInputs, mask: Mask) -> tuple[Bool[Tensor, "1 1 L S"], ...]:
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
