"""Give a model the weights of a GGUF file as the file has them: quantised, mapped into memory, and raised where used.

llama.cpp turns some weights as it writes them, and transformers turns them back. Whole rows can be put in another
order, joined, or taken as columns without being raised, so those of quantised ones are. Small tensors are read as
transformers reads them.
"""

import mmap
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.model_files.quantised_rows import QuantisedRows
from regard.model_files.stored_weight import StoredWeight

LEAST = 1 << 14  # numbers of a matrix below which it is raised once and for all: it is small, and sooner used
WHOLE = ("F64", "F32", "I8", "I16", "I32", "I64")  # kinds that are not smaller than float32, or of no weight
HALVES = {"F16": torch.float16, "BF16": torch.bfloat16}
EXPERTS = re.compile(r"(?P<name>.*\.ffn_(?P<part>gate|down|up)_exps)\.weight$")  # of all experts of a layer
COLUMNS = ("attn_qkv.weight", "ffn_down.weight", "ffn_up.weight", "attn_output.weight")  # of GPT-2, stored transposed


def stored_gguf_tensors(reader: Any, model: nn.Module, config: Mapping[str, Any], family: str) -> dict[str, Tensor]:
    """Read the file's tensors by the names that the model has for them: large matrices as `StoredWeight`s.

    reader: gguf's, of a file that was opened so that it is copied where it is written. config: what transformers reads
    of it. family: the file's architecture.
    """
    from transformers import modeling_gguf_pytorch_utils as theirs

    processor = theirs.TENSOR_PROCESSORS.get(family, theirs.TensorProcessor)(config=dict(config))
    names = theirs.get_gguf_hf_weights_map(model, processor)
    found: dict[str, Tensor] = {}
    first: dict[str, Any] = {}  # of each layer's experts the one of two matrices that came before the other
    for each in reader.tensors:
        experts = EXPERTS.match(each.name)
        joined = None if experts is None else names.get(experts["name"])
        if experts is None or joined is None:
            name = "lm_head.weight" if family == "gpt2" and each.name == "output.weight" else names.get(each.name)
            if name is not None:
                found[name] = _read_tensor(each, processor, family)
        elif experts["part"] == "down":
            found[joined] = _stored(each) if _is_kept(each) else _raised(each)
        elif joined in first:
            both = first.pop(joined), each
            found[joined] = _joined(*(both if experts["part"] == "up" else reversed(both)))
        else:
            first[joined] = each
    _give_pages_back(reader)
    return found


def _read_tensor(each: Any, processor: Any, family: str) -> Tensor:
    """A tensor as the model has it."""
    if not _is_kept(each):
        return _raised(each, lambda weights: processor.process(weights, each.name, parsed_parameters={}).weights)
    weight = _stored(each)
    if family == "gpt2" and any(name in each.name for name in COLUMNS):
        return weight.t()
    if family == "llama":
        rows = np.arange(len(weight))
        order = processor.process(rows[:, None], each.name).weights[:, 0]
        return weight if np.array_equal(order, rows) else weight[torch.from_numpy(order.copy())]
    return weight  # the others turn vectors alone; `gguf_header.CHANGED` has the families that do more


def _is_kept(each: Any) -> bool:
    """Whether a tensor is a large matrix, or several, that is smaller than in float32."""
    return len(each.shape) > 1 and each.n_elements >= LEAST and each.tensor_type.name not in WHOLE


def _stored(each: Any) -> Tensor:
    """A tensor's numbers where they lie in the mapped file, as a `StoredWeight`."""
    import gguf

    package: Any = gguf
    kind, data = each.tensor_type.name, torch.from_numpy(each.data)
    if kind in HALVES:
        return StoredWeight.of(data.view(HALVES[kind]))
    return StoredWeight.of(QuantisedRows(data, kind, package.GGML_QUANT_SIZES[each.tensor_type]))


def _joined(gate: Any, up: Any) -> Tensor:
    """Two matrices of each expert as one, the first's rows above the other's."""
    if not _is_kept(gate) or gate.tensor_type != up.tensor_type:
        return torch.cat([_raised(gate), _raised(up)], 1)
    one, other = (weight.stored if isinstance(weight := _stored(each), StoredWeight) else weight for each in (gate, up))
    if isinstance(one, QuantisedRows) and isinstance(other, QuantisedRows):
        return StoredWeight.of(QuantisedRows(torch.cat([one.bytes, other.bytes], 1), one.kind, one.sizes))
    return torch.cat([_stored(gate), _stored(up)], 1)


def _raised(each: Any, turn: Callable[[Any], Any] = np.asarray) -> Float[Tensor, "..."]:
    """A tensor in float32, turned."""
    import gguf

    package: Any = gguf
    return torch.from_numpy(np.copy(turn(package.dequantize(each.data, each.tensor_type)))).float()


def _give_pages_back(reader: Any) -> None:
    """Let go of the pages of the mapped file that were read to be copied; those that are used come again."""
    mapped: Any = getattr(getattr(reader, "mapped", None), "_mmap", None)
    if hasattr(mapped, "madvise"):  # not on Windows
        mapped.madvise(mmap.MADV_DONTNEED)
