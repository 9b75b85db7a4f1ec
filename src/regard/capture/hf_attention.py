"""Run a Hugging Face model with `regard.attend`, by an attention function and a mask function for transformers.

Score rules come from the call's arguments. During a captured pass, a few query rows of each call are recomputed with
the model's own eager function. The trace's status reports the largest difference.

transformers describes a mask by a function of (batch, head, query, key), composed of a few known functions. regard
recognizes these and evaluates unknown functions directly. If a model computes with its mask as a tensor, the mask
specification raises `TensorMaskError`, and the pass is repeated with masks as tensors.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers import masking_utils as patterns
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, eager_mask, sdpa_mask

from regard.attention import masks
from regard.attention.attend import Attention, attend
from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Mask
from regard.attention.recording import scope
from regard.attention.scores import ScoreRule
from regard.capture.eager_attention import settings_put_back
from regard.capture.options import TensorMaskError
from regard.capture.output_path import follow_context
from regard.capture.state import Capture, ModuleIndex, compared_batch_texts, sampled_rows
from regard.errors import RegardError

MaskFunction = Callable[..., Any]


def _refuse_mask_as_tensor(*_: Any, **__: Any) -> NoReturn:
    raise TensorMaskError("a Mask is a specification of positions, no tensor to compute with")


@dataclass(frozen=True, eq=False)
class ModelMask(Mask):
    """A mask specification that a model can only pass on to the attention function.

    key_count: its number of keys. skippable: whether PyTorch's kernels would skip the mask if it allows all keys.
    """

    key_count: int = 0
    skippable: bool = False

    @classmethod
    def of(cls, mask: Mask, *, key_count: int, skippable: bool = False) -> "ModelMask":
        """Convert a mask specification to one that transformers models accept."""
        same = {item.name: getattr(mask, item.name) for item in fields(Mask)}
        return cls(**same, key_count=key_count, skippable=skippable)

    def __bool__(self) -> bool:
        return True  # some models test whether there is a mask

    def __and__(self, other: Any) -> Mask:
        return super().__and__(other) if isinstance(other, Mask) else _refuse_mask_as_tensor()

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        _refuse_mask_as_tensor()

    # missing attributes, indexing, arithmetic and comparison
    __getattr__ = __getitem__ = __setitem__ = __len__ = __float__ = __int__ = _refuse_mask_as_tensor
    __neg__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_mask_as_tensor
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse_mask_as_tensor
    __or__ = __xor__ = __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = _refuse_mask_as_tensor
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = _refuse_mask_as_tensor


def specification(function: MaskFunction, query_start: int, key_start: int) -> Mask | None:
    """Convert a transformers mask function to a mask if it consists of known patterns, else return None.

    query_start, key_start: the positions of the first query and the first key of the call.
    """
    shift = query_start - key_start
    if function is patterns.bidirectional_mask_function:
        return Mask()
    if function is patterns.causal_mask_function:
        return masks.causal(shift)
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    variables = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
    factory = getattr(function, "__qualname__", "").split(".")[0]
    if factory == "and_masks":
        joined = Mask()
        for part in variables["mask_functions"]:
            mask = specification(part, query_start, key_start)
            if mask is None:
                return None
            joined = joined & mask
        return joined
    if factory == "sliding_window_overlay":
        return Mask(low=shift + 1 - int(variables["sliding_window"]))
    if factory == "sliding_window_bidirectional_overlay":
        return masks.window(int(variables["sliding_window"]), int(variables["sliding_window"]), shift)
    return None


NAME = "regard"


_checked_masks: set[Any] = set()  # masks compared with transformers' own; texts of equal length share a mask

# (call number, module, (query, key, value), scaling, other arguments, result of `attend`, sampled rows of its output)
_Compared = tuple[int, nn.Module, tuple[Tensor, Tensor, Tensor], float | None, Mapping[str, Any], Attention, Tensor]
_capture: ContextVar[Capture | None] = ContextVar("regard_capture", default=None)


@contextmanager
def through_interface(model: Any, capture: Capture) -> Iterator[None]:
    """Run a model with regard's attention function inside the block, and restore its own setting afterwards."""
    token = _capture.set(capture)
    index = capture.index or ModuleIndex(model)
    try:
        with settings_put_back(index.modules):
            model.set_attn_implementation(NAME)
            yield
            with torch._C.DisableTorchFunction():
                _compare(capture, capture.to_compare or ())
    finally:
        _capture.reset(token)


def attention(
    module: nn.Module,
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    **rest: Any,
) -> tuple[Float[Tensor, "B L H E"], None]:
    """Compute attention as transformers' attention function: one call to `attend`, with the module's path as scope.

    All arguments are as transformers passes them.
    """
    if query.dtype != torch.float64 and torch.is_autocast_enabled(query.device.type):  # as PyTorch's attention does
        query, key, value = (x.to(torch.get_autocast_dtype(x.device.type)) for x in (query, key, value))
    rule: dict[str, Any] = {"scale": scaling, "softcap": rest.get("softcap"), "sinks": rest.get("s_aux")}
    capture = _capture.get()
    if rest.get("sinks") is not None:  # Inkling 2 has a sink score per query, but s_aux is one per head
        raise RegardError(f"{type(module).__name__} has a different sink for each query, which cannot be traced yet")
    if isinstance(attention_mask, ModelMask):
        if attention_mask.key_count != key.shape[2]:  # the model added keys without extending the mask
            raise TensorMaskError(f"a Mask for {attention_mask.key_count} keys met {key.shape[2]}")
        rule["mask"] = attention_mask
        if capture is not None and attention_mask.skippable and rest.get("is_causal") is None:
            free = attention_mask.simplified(query.shape[2], key.shape[2]) is None
            capture.contradiction |= free and query.shape[2] > 1 and getattr(module, "is_causal", False) is True
    elif attention_mask is None:
        causal = rest.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        rule["causal"] = bool(causal) and query.shape[2] > 1
    elif attention_mask.dtype == torch.bool:
        rule["mask"] = attention_mask[..., : key.shape[2]]
    else:
        rule["bias"] = attention_mask[..., : key.shape[2]]
    if rest.get("position_bias") is not None:
        rule["bias"] = rest["position_bias"] if "bias" not in rule else rule["bias"] + rest["position_bias"]
    path = capture.index.paths.get(id(module), "") if capture is not None and capture.index is not None else ""
    with scope(path), torch._C.DisableTorchFunction():  # operations inside attention aren't followed
        result = attend(query, key, value, dropout=dropout, **rule)
    if capture is not None:
        capture.count_call(path)
        widened = result.weights.query.shape[3] != query.shape[3]  # then rows were patched
        if capture.keep.has_comparisons and not widened:
            rows = sampled_rows(query.shape[2]).to(query.device)
            seen = result.output.index_select(2, rows)  # copied now: the model may overwrite its context
            call = capture.call_count, module, (query, key, value), scaling, rest, result, seen
            if capture.to_compare is not None:
                capture.to_compare.append(call)
            else:
                with torch._C.DisableTorchFunction():
                    _compare(capture, [call])
    context = result.output.transpose(1, 2).contiguous()  # (B, L, H, E)
    if capture is None or (capture.keep.attention_outputs and capture.keep.call(path)):
        follow_context(context, module)
    return context, None


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int | Tensor = 0,
    mask_function: MaskFunction = causal_mask_function,
    attention_mask: Bool[Tensor, "B S"] | None = None,
    **rest: Any,
) -> Mask | Tensor:
    """Make the mask as transformers' mask function: a specification if the pattern is known, else a tensor.

    All arguments are as transformers passes them.
    """
    starts = int(q_offset), int(kv_offset)
    skippable = bool(rest.get("allow_is_bidirectional_skip"))
    rest |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    known = specification(mask_function, *starts)

    def predicate(i: Tensor, j: Tensor) -> Any:
        """Evaluate transformers' mask function for one text."""
        batch = i.new_zeros(())
        return mask_function(batch, batch, i + starts[0], j + starts[1])

    if known is None and batch_size == 1:
        known = masks.function(predicate)

    def written_out(queries: int, query_start: int) -> Tensor:
        written = sdpa_mask(
            batch_size, queries, kv_length, query_start, starts[1], mask_function, attention_mask, **rest
        )
        assert written is not None  # skipping is disabled above
        return written

    capture = _capture.get()
    if capture is not None and capture.keep.written_masks:  # additive, as eager attention receives it
        shape = (batch_size, q_length, kv_length, *starts)
        return eager_mask(*shape, mask_function, attention_mask, **rest)
    if known is None:  # the pattern differs between texts
        return written_out(q_length, starts[0])
    if attention_mask is not None:
        start = int(kv_offset)
        keys = attention_mask[:, start : start + kv_length].bool()
        known = known if bool(keys.all()) else known & masks.padding(keys)
    checked = mask_function, q_length, kv_length, starts
    plain = attention_mask is None and mask_function in (causal_mask_function, bidirectional_mask_function)
    if plain and checked in _checked_masks:
        return ModelMask.of(known, key_count=kv_length, skippable=skippable)
    for row in sampled_rows(q_length).tolist():  # a check that the pattern was recognized correctly
        expected = written_out(1, starts[0] + row)
        tile = known.tile(slice(0, batch_size), slice(0, 1), slice(row, row + 1), slice(0, kv_length), expected.device)
        if not bool((expected == (True if tile is None else tile)).all()):
            return written_out(q_length, starts[0])
    if plain:
        _checked_masks.add(checked)
    return ModelMask.of(known, key_count=kv_length, skippable=skippable)


def _compare(capture: Capture, calls: Sequence[_Compared]) -> None:
    """Compare a few rows of each call, for some texts of its batch, with the model's own eager function.

    Calls of the same shape without mask and bias are compared in one computation, which is faster.
    """
    alike: dict[Any, list[tuple[Tensor, ...]]] = {}
    for number, module, tensors, scaling, rest, result, context in calls:
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        if eager is None:
            continue
        texts = compared_batch_texts(number, tensors[0].shape[0])
        query, key, value = (tensor[texts] for tensor in tensors)
        if query.dtype.itemsize < 4:  # rounding of half precision would hide errors of the float32 weights
            query, key, value = query.float(), key.float(), value.float()
            capture.comparison.widened = True
        rows = sampled_rows(query.shape[2]).to(query.device)
        query, weights = query.index_select(2, rows), result.weights
        rule = weights.rule
        additive = torch.zeros(1, 1, len(rows), key.shape[2], dtype=query.dtype, device=query.device)
        if rule.bias is not None:
            additive = additive + masks.select(rule.bias, texts, slice(None), rows, slice(None)).to(query.dtype)
        if rule.mask is not None:
            allowed = rule.mask.tile(texts, slice(None), rows, slice(0, key.shape[2]), query.device)
            if allowed is not None:
                additive = additive.masked_fill(~allowed, torch.finfo(query.dtype).min)
        keep = {name: x for name, x in rest.items() if name not in ("position_bias", "is_causal", "sliding_window")}
        try:
            with torch.autocast(query.device.type, enabled=False):
                output, expected = eager(module, query, key, value, additive, scaling=scaling, dropout=0.0, **keep)
        except AttributeError:  # the function is for another module of this file, as in Phi 4's vision tower
            continue
        computed_out = context[texts].transpose(1, 2)  # (B, r, H, E)
        out = (output.reshape(computed_out.shape) - computed_out).abs_()
        plain = rule.bias is None and rule.mask is None and rule.sinks is None
        if plain and len(calls) > 1:
            query_key = weights.query[texts].index_select(2, rows), weights.key[texts]
            kind = rule.scale, rule.softcap, query_key[0].shape, query_key[1].shape, query_key[0].dtype
            alike.setdefault(kind, []).append((*query_key, expected, out))
            continue
        computed = weights.rows(texts, rows)
        error, count = (expected.to(computed.dtype) - computed).abs_(), len(computed) * len(rows)
        if not plain:  # eager attention has uniform weights in fully masked rows
            seen = result.valid[texts].index_select(2, rows).all(1)  # (B, r)
            error, out, count = error.transpose(1, 2)[seen], out[seen], int(seen.sum())
        if count:
            capture.comparison.add(float(error.amax()), float(out.amax()), count)
    for (scale, softcap, *_), group in alike.items():
        query, key, expected, out = (torch.cat(parts) for parts in zip(*group, strict=True))
        all_rows = torch.arange(query.shape[2], device=query.device)
        computed = AttentionMap(query, key, ScoreRule(scale, softcap)).rows(slice(0, len(query)), all_rows)
        error = (expected.to(computed.dtype) - computed).abs_()
        capture.comparison.add(float(error.amax()), float(out.amax()), len(query) * len(all_rows))


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
