"""Take an attention map apart into plain tensors and a small JSON description, and build it again; save and load it.

Stored is what the weights are computed from: query, key, bias, sinks and mask, each in its own dtype. The size on disk
is O(L + S) wherever it was in memory; a loaded map computes its weights by the same routine as the one that was saved.
What is read is checked against what `attend` accepts: a file may come from anybody.
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
from regard.json_files import expect_fields, expect_finite, expect_integer, expect_type
from regard.tensor_files.description import MAP, metadata_of
from regard.tensor_files.digests import digest_of, why_invalid
from regard.tensor_files.file import read_tensor_file

FORMAT = MAP
FUNCTION_LIMIT = 1 << 24  # scores up to which a function's answers are written out: 16 MiB, a map of 4096 × 4096
FURTHEST = 1 << 31  # positions: no sequence is so long, and differences of them are exact
MINUS_INFINITY = ("bias", "sinks")  # tensors that may hold -inf: the score of what is not attended to


def pack(map: MapInputs) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return (tensors, description) of a map: contiguous tensors that share no memory, and what JSON can hold.

    Many maps go into one file by giving each its own prefix to the tensors' names.

    Raises:
        ValueError: the mask is a function of positions and too large to be written out.
    """
    tensors, description = describe_attention_map(map)
    return _unshared(tensors), description


def describe_attention_map(map: MapInputs) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return what `pack` gives, with the map's own tensors by reference: nothing is copied yet.

    Raises:
        ValueError: the mask is a function of positions and too large to be written out.
    """
    rule = map.rule
    tensors = {"query": map.query, "key": map.key}
    if rule.bias is not None:
        tensors["bias"] = _without_expanded_axes(rule.bias)
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
        tensors |= {f"mask.dense.{n}": _without_expanded_axes(tensor) for n, tensor in enumerate(dense)}
        if rule.mask.keys is not None:
            tensors["mask.keys"] = rule.mask.keys
    return tensors, description


def unpack_attention_map(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> MapInputs:
    """Check and build what the map that `pack` took apart is computed from; `AttentionMap.of` makes a map of it.

    Raises:
        RegardError: as `check_map_description`.
    """
    check_map_description(tensors, description)
    return build_map_inputs(tensors, description)


def check_map_description(tensors: Mapping[str, Tensor], description: Any) -> None:
    """Check a map's description against its tensors, of which no number is read: they may be on "meta".

    Raises:
        RegardError: a value that `attend` would not accept, or tensors that are missing, too many, or do not fit.
    """
    expect_fields("attention map", description, ("offset", "ndim", "scale", "softcap", "mask"))
    if "query" not in tensors or "key" not in tensors:
        raise RegardError(f"attention map: needs tensors named 'query' and 'key', given {', '.join(tensors) or 'none'}")
    query, key = tensors["query"], tensors["key"]
    shape = _map_shape(query, key)
    expect_integer("offset", description["offset"], -FURTHEST, FURTHEST, None)
    ndim = expect_integer("ndim", description["ndim"], 2, 4)
    if any(size != 1 for size in shape[: 4 - ndim]):
        raise RegardError(f"ndim is {ndim}, needs more to show a map of shape {shape}")
    dtype, softcap = working_dtype(query), description["softcap"]
    _check_map_score_factor("scale", description["scale"], dtype)
    if softcap is not None:
        _check_map_score_factor("softcap", softcap, dtype)
        if not torch.tensor(float(softcap), dtype=dtype) > 0:
            raise RegardError(f"softcap is {float(softcap)}, needs a number above 0")
    for name, tensor in tensors.items():
        _check_map_tensor_shape(name, tensor, shape)
    known = {"query", "key", "bias", "sinks"}
    if description["mask"] is not None:
        known |= _check_mask(description["mask"], tensors, shape)
    unknown = set(tensors) - known
    if unknown:
        raise RegardError(f"attention map: its tensor {min(unknown)!r} is unknown")


def build_map_inputs(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> MapInputs:
    """Build what a map is computed from, of a description that `check_map_description` accepted."""
    softcap, described, mask = description["softcap"], description["mask"], None
    if described is not None:
        dense = tuple(tensors[f"mask.dense.{n}"] for n in range(described["dense"]))
        removed = tuple(map(Edges.of, described["removed"]))
        mask = Mask(described["low"], described["high"], tensors.get("mask.keys"), dense, removed=removed)
    rule = ScoreRule(
        float(description["scale"]),
        None if softcap is None else float(softcap),
        tensors.get("bias"),
        mask,
        tensors.get("sinks"),
    )
    return MapInputs(tensors["query"], tensors["key"], rule, offset=description["offset"], ndim=description["ndim"])


def save(map: MapInputs, file: str | Path) -> None:
    """Write one map as a safetensors file, whole or not at all.

    Raises:
        RegardError: it holds NaN or infinity, or what could not be opened again.
    """
    tensors, description = pack(map)
    check_map_description(tensors, description)  # as `load` will
    for name, tensor in tensors.items():
        tensors[name] = tensor = tensor.cpu()
        why = why_invalid(tensor, name in MINUS_INFINITY)
        if why is not None:
            raise RegardError(f"attention map: its tensor {name!r} holds {why}: it cannot be saved")
    metadata = metadata_of(FORMAT, {"map": description}, {name: digest_of(tensor) for name, tensor in tensors.items()})
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
        opened = read_tensor_file(path, FORMAT)
        described = expect_fields("its description", opened.description, ("map",))["map"]
        tensors = {
            name: opened.guarded(name, tensor, minus_inf=name in MINUS_INFINITY)
            for name, tensor in opened.tensors.items()
        }
        loaded = unpack_attention_map(tensors, described)
    except OSError as error:
        raise RegardError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RegardError(f"{file}: no whole attention map: {str(error).splitlines()[0]}") from error
    if verify:
        opened.verify()
    return loaded


def _map_shape(query: Tensor, key: Tensor) -> tuple[int, int, int, int]:
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


def _check_map_tensor_shape(name: str, tensor: Tensor, shape: tuple[int, int, int, int]) -> None:
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


def _check_map_score_factor(name: str, value: Any, dtype: torch.dtype) -> None:
    """Check a number that scores of a dtype are multiplied by."""
    number: float = expect_finite(name, value)
    if not math.isfinite(torch.tensor(number, dtype=dtype)):
        raise RegardError(f"{name} is {number}, which is more than {str(dtype).removeprefix('torch.')} holds")


def _check_mask(described: Any, tensors: Mapping[str, Tensor], shape: tuple[int, int, int, int]) -> set[str]:
    """Check a mask's description, every count against the tensors that there are; return its tensors' names."""
    expect_fields("mask", described, ("low", "high", "dense", "removed"))
    for name in ("low", "high"):
        expect_integer(f"mask: {name}", described[name], -FURTHEST, FURTHEST, None)
    count = sum(name.startswith("mask.dense.") for name in tensors)
    expect_integer("mask: the number of its dense parts", described["dense"], count, count)
    names = [f"mask.dense.{n}" for n in range(count)]
    for name in names:
        if name not in tensors:
            raise RegardError(f"mask: its tensor {name!r} is missing")
    for each in expect_type("mask: removed", described["removed"], list):
        _check_removed_map_edges(each, shape)
    return {"mask.keys", *names}


def _check_removed_map_edges(described: Any, shape: tuple[int, int, int, int]) -> None:
    """Check removed edges of a map of a shape: their numbers rise and are within it."""
    expect_fields("edges", described, ("shape", *AXES))
    sizes = [expect_type("edges: shape", n, int) for n in expect_type("edges: shape", described["shape"], list)[:5]]
    if sizes != list(shape):
        raise RegardError(f"edges are described of a map of shape {tuple(sizes)}, it has {shape}")
    for name, size in zip(AXES, shape, strict=True):
        before = -1
        for number in expect_type(f"edges: {name}", described[name], list, None) or ():
            before = expect_integer(f"edges: one of {name}", number, before + 1, size - 1)


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


def _without_expanded_axes(tensor: Tensor) -> Tensor:
    """A broadcastable tensor with the axes that were only expanded taken back to size 1."""
    for axis in range(tensor.ndim):
        if tensor.stride(axis) == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors, copied where two lie in one storage: a safetensors file refuses to hold such."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        tensor = tensor.contiguous()
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in seen and tensor.numel() else tensor
        seen.add(place)
    return apart
