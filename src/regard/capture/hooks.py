"""Hook one forward pass of a model: its attention calls, embeddings, hidden states and attention outputs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor

from regard.attention.map_statistics import Statistics
from regard.attention.recording import Calls, record
from regard.capture.embeddings import EmbeddingParts, record_embeddings
from regard.capture.hidden_states import record_layers
from regard.capture.output_path import follow_outputs
from regard.capture.state import Capture, LayerStack
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput


@dataclass
class PassRecord:
    """What was recorded of one forward pass; complete when the block of `record_pass` is left.

    calls: its attention calls. embeddings: one group of parts for each sequence that was read. stacks: its stacks of
    layers, by path. attention_outputs: of each call that was followed, in order. last: "last_hidden_state" and
    "encoder_last_hidden_state", where there are such.
    """

    calls: Calls
    embeddings: list[EmbeddingParts]
    stacks: dict[str, LayerStack]
    attention_outputs: list[AttentionOutput | UnverifiedOutput]
    last: dict[str, Tensor]


@contextmanager
def record_pass(
    model: Any,
    capture: Capture,
    ids: Sequence[Int[Tensor, "B _"]],
    *,
    head_input: bool,
    layers: Collection[int] | None = None,
    keep: Collection[str] | None = None,
    statistics: Statistics | None = None,
) -> Iterator[PassRecord]:
    """Record the forward pass that is made inside the block; the model's hooks are taken off after it.

    ids: token ids of each sequence that it reads. head_input: whether what enters the language head may stand for the
    last hidden state. layers, keep, statistics: of the attention calls, as in `regard.record`.
    """
    parts: AbstractContextManager[list[EmbeddingParts]] = (
        record_embeddings(model, ids) if capture.keep.embeddings else nullcontext([])
    )
    followed: AbstractContextManager[list[AttentionOutput | UnverifiedOutput]] = (
        follow_outputs() if capture.keep.attention_outputs else nullcontext([])
    )
    with (
        record(layers, keep, statistics or False) as calls,
        parts as embeddings,
        record_layers(model, capture) as stacks,
        followed as attention_outputs,
        record_last_hidden_states(model, head_input=head_input) as last,
    ):
        yield PassRecord(calls, embeddings, stacks, attention_outputs, last)


@contextmanager
def record_last_hidden_states(model: Any, *, head_input: bool) -> Iterator[dict[str, Tensor]]:
    """Record the base model's last hidden state, and its encoder's, of the pass inside the block.

    head_input: whether what enters the language head may stand for it, where the pass goes round the base model.
    """
    last: dict[str, Tensor] = {}

    def keep_last(_module: Any, _args: Any, output: Any) -> None:
        for name in ("last_hidden_state", "encoder_last_hidden_state"):
            if isinstance(getattr(output, name, None), Tensor):
                last[name] = getattr(output, name)

    def keep_head_input(_module: Any, args: Any) -> None:
        last.setdefault("last_hidden_state", args[0])  # where a head goes round its base model, as OPT's does

    ends = (model.base_model, model)  # what the model itself returns replaces what its base model returned
    hooks = ExitStack()
    for end in ends:
        hooks.enter_context(end.register_forward_hook(keep_last))
    head = model.get_output_embeddings() if head_input else None
    if head is not None:
        hooks.enter_context(head.register_forward_pre_hook(keep_head_input))
    with hooks:
        yield last
