"""How much memory a trace will take, from the model's shapes and the texts' lengths: an estimate, made beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from regard import memory
from regard.attention.map_statistics import Statistics
from regard.capture.options import CaptureOptions
from regard.capture.state import ModuleFacts

HELPS = "trace fewer layers (layers=), without logits (logits=False), in windows (window=), or a shorter text"


@dataclass(frozen=True)
class Sizes:
    """Numbers that a token needs somewhere in a model. width: M. parts: of its embeddings. queries: H · D.

    keys: of keys and values, 2 · G · D. inner: of the widest map but the language head. vocabulary: of the logits, 0
    without a head. bytes: of one number.
    """

    layers: int
    heads: int
    width: int
    parts: int
    queries: int
    keys: int
    inner: int
    vocabulary: int
    bytes: int

    @staticmethod
    def of(model: Any) -> "Sizes":
        """The sizes that a model's config and modules tell."""
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        try:
            table = model.get_input_embeddings()
        except NotImplementedError:  # it reads no ids
            table = None
        head = model.get_output_embeddings()
        width: int = _number_in_model_config(config, "hidden_size") or int(getattr(table, "embedding_dim", 0))
        heads = _number_in_model_config(config, "num_attention_heads") or 1
        each = _number_in_model_config(config, "head_dim") or width // heads
        groups = _number_in_model_config(config, "num_key_value_heads") or heads
        wide = [
            getattr(module, "nf", 0) or module.out_features  # of transformers' Conv1D, which GPT-2 has, or nn.Linear
            for module in model.modules()
            if (isinstance(module, nn.Linear) and module is not head) or type(module).__name__ == "Conv1D"
        ]
        return Sizes(
            layers=_number_in_model_config(config, "num_hidden_layers") or 1, heads=heads, width=width,
            parts=4 * width, queries=heads * each, keys=2 * groups * each, inner=max([width, *wide]),
            vocabulary=0 if head is None else getattr(head, "out_features", 0), bytes=model.dtype.itemsize,
        )  # fmt: skip

    def held(self, tokens: int, keep: CaptureOptions) -> int:
        """Bytes that traces of so many tokens hold: what each layer that is kept leaves, the rest once."""
        layers = self.layers if keep.layers is None else len(keep.layers)
        # its block's projection, its state
        one = self.width * (2 if keep.attention_outputs else 1) + (self.queries + self.keys) * keep.attention
        once = self.parts + 2 * self.width + (self.vocabulary if keep.logits else 0)
        held = tokens * self.bytes * (layers * one + once)
        if keep.statistics is None:
            return held
        return held + layers * self.heads * _bytes_of_statistics(tokens, keep.statistics)

    def passing(self, lengths: Sequence[int], keep: CaptureOptions, trims: bool, written_out: bool) -> int:
        """Bytes that one forward pass of a batch takes beside what its traces hold."""
        tokens, longest = len(lengths) * max(lengths), max(lengths)
        inside = 3 * self.inner + 4 * self.width + 2 * (self.queries + self.keys)
        logits = 0 if keep.logits or trims else self.vocabulary  # those that are kept are counted there
        passing = tokens * self.bytes * (inside + logits)
        if written_out:
            passing += 3 * self.layers * self.heads * tokens * longest * self.bytes
        return passing


def require_trace_memory(
    facts: ModuleFacts,
    name: str,
    batches: Sequence[Sequence[int]],
    keep: CaptureOptions,
    trims: bool,
    written_out: bool,
) -> None:
    """Refuse what will not fit into memory, before it is begun."""
    sizes = replace(facts.once(Sizes.of), bytes=facts.model.dtype.itemsize)
    tokens = sum(map(sum, batches))
    padded = sum(len(lengths) * max(lengths) for lengths in batches)  # traces are views of their batch
    need = sizes.held(padded, keep) + max(sizes.passing(lengths, keep, trims, written_out) for lengths in batches)
    what = (
        f"a trace of {tokens} tokens" if len(batches) == len(batches[0]) == 1 else f"traces of {tokens} tokens in all"
    )
    memory.require_memory(need, facts.model.device, f"{what} by {name}", HELPS)


def _bytes_of_statistics(tokens: int, wanted: Statistics) -> int:
    """Bytes that the statistics of one head take."""
    rows, cols = wanted.pooled or (0, 0)
    return 12 * tokens * ((wanted.top or 0) + 1) + 4 * min(rows, tokens) * min(cols, tokens)


def _number_in_model_config(config: Any, name: str) -> int | None:
    """A positive number of a config, None where it has none (some families count by layer)."""
    try:
        found = getattr(config, name, None)
    except RuntimeError:  # it may be another one in each layer
        return None
    return found if isinstance(found, int) and found > 0 else None
