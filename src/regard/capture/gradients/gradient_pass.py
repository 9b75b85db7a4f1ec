"""Run one text through a model and differentiate an outcome by the token embeddings and each layer's states.

The model's own fused attention is differentiated, so no n × n tensor exists. For gradients by head, regard's attention
runs instead, with PyTorch's fused kernels. Parameters get no gradient.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import current_call_path, hooked_calls
from regard.capture.hooks import record_last_hidden_states, record_layers
from regard.capture.inputs import logits_in
from regard.capture.interventions.names import CallNumbering
from regard.capture.interventions.states import LayerHooks, Stacks
from regard.capture.options import CaptureOptions, masks_as_needed
from regard.capture.session import Session
from regard.capture.state import Capture
from regard.errors import RegardError
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import Encoded

# Replaces the token embeddings of the n-th text that the model looks up (the encoder's is first).
Exchange = Callable[[int, Float[Tensor, "L W"]], Float[Tensor, "L W"]]


@dataclass
class HeadValues:
    """Hooks around attention calls (`recording.CallHook`). They keep the values of the layers that a trace shows."""

    numbering: CallNumbering
    values: list[Float[Tensor, "1 H S E"]] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def before(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Repeat shared keys and values for each query head, so that each head has separate gradients."""
        shared = query.shape[1] // value.shape[1]
        if shared > 1:
            key, value = (tensor.repeat_interleave(shared, 1) for tensor in (key, value))
        return query, key, value

    def after(self, weights: AttentionMap, value: Tensor, output: Tensor) -> Tensor:
        """Keep the call's values if it is in a layer that a trace shows."""
        path = current_call_path()
        if self.numbering(path, self._counts[path]) is not None:
            self.values.append(value)
        self._counts[path] += 1
        return output


@contextmanager
def kept_head_values(session: Session, *, written_masks: bool = False) -> Iterator[HeadValues]:
    """Run attention through regard inside the block, and keep the values of its heads."""
    if session.reports_weights:
        raise RegardError(f"heads of {session.name}: its attention does not go through regard: they are not seen")
    keep = CaptureOptions(attention_outputs=False, embeddings=False, compare=False, written_masks=written_masks)
    capture = Capture(session.index, keep)
    head_values = HeadValues(CallNumbering(session.model, capture, pairs=session.pairs))
    with session.capture_attention(capture), record_layers(session.model, capture), hooked_calls(head_values):
        yield head_values


@dataclass
class GradientPass:
    """The differentiable results of one pass, per stack (the encoder's first).

    embeddings: the token embeddings, as looked up or replaced. states: the input of each layer and the output of the
    last, with a batch axis. last_hidden_state, logits: of the last stack. head_values: the values of each attention
    call in order, repeated for each query head, if requested.
    """

    embeddings: list[Float[Tensor, "L W"]] = field(default_factory=list)
    states: list[list[Float[Tensor, "1 L M"]]] = field(default_factory=list)
    last_hidden_state: Float[Tensor, "L K"] | None = None
    logits: Float[Tensor, "..."] | None = None
    head_values: list[Float[Tensor, "1 H S E"]] = field(default_factory=list)

    def gradients(self, outcome: Float[Tensor, ""], of: list[Tensor]) -> list[Tensor]:
        """Differentiate an outcome by tensors of the pass. Tensors that it doesn't depend on have gradient 0."""
        if not outcome.requires_grad:
            raise RegardError("gradients: the outcome is a plain number; one of tensors, such as a logit, is needed")
        gradients = torch.autograd.grad(outcome, of, retain_graph=True, allow_unused=True)
        return [
            torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(of, gradients, strict=True)
        ]


@masks_as_needed
def gradient_pass(
    session: Session, source: Encoded, target: Encoded | None, stacks: Stacks, exchange: Exchange | None = None,
    *, heads: bool = False, written_masks: bool = False,
) -> GradientPass:  # fmt: skip
    """Run a text, and for an encoder-decoder its target, through a model with gradients.

    exchange: replaces token embeddings. heads: whether to keep the values of each head.
    """
    result, model, kept = GradientPass(), session.model, _KeptStates(session.model, stacks)
    inputs = session.inputs([source], None if target is None else [target], CaptureOptions())
    with (
        session.alone(),
        quiet(),
        torch.enable_grad(),
        kept_head_values(session, written_masks=written_masks) if heads else nullcontext() as head_values,
        _exchanged(model, result, exchange),
        kept.opened(),
        record_last_hidden_states(model, head_input=True) as last,
    ):
        output = model(**inputs)
    if head_values is not None:
        result.head_values = head_values.values
        if not head_values.values:
            raise RegardError(f"heads of {session.name}: none of its attention calls was seen")
    if not result.embeddings or "last_hidden_state" not in last:
        state = "token embeddings" if not result.embeddings else "its last hidden state"
        raise RegardError(f"gradients: {session.name} does not show {state} to hooks: it cannot be differentiated here")
    result.states, result.last_hidden_state = kept.states, last["last_hidden_state"][0]
    logits = logits_in(output, session.labels)
    result.logits = None if logits is None else logits[0]
    return result


@contextmanager
def _exchanged(model: Any, result: GradientPass, exchange: Exchange | None) -> Iterator[None]:
    """Make the token embeddings inside the block leaves of the autograd graph, after `exchange` if given."""

    def leaf(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        rows = output[0].detach()
        rows = rows if exchange is None else exchange(len(result.embeddings), rows).to(rows)
        result.embeddings.append(rows.clone().requires_grad_())
        return result.embeddings[-1][None]

    # an encoder and a decoder may have separate tables, or share one
    parts = [model.get_input_embeddings()]
    for side in ("get_encoder", "get_decoder"):
        part = getattr(model, side, lambda: None)() if getattr(model.config, "is_encoder_decoder", False) else None
        table = None if part is None else part.get_input_embeddings()
        parts += [] if table is None else [table]
    with ExitStack() as hooks:
        for module in dict.fromkeys(parts):
            hooks.enter_context(module.register_forward_hook(leaf))
        yield


class _KeptStates(LayerHooks):
    """Keep the input of each layer and the output of the last, per stack."""

    def __init__(self, model: nn.Module, stacks: Stacks) -> None:
        super().__init__(model, stacks)
        self.states: list[list[Tensor]] = [[] for _ in stacks]

    def entered(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Keep a layer's input. It replaces the previous layer's output."""
        self.states[stack][layer:] = [states]
        return states

    def left(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Keep a layer's output until the next layer is entered."""
        self.states[stack][layer + 1 :] = [states]
        return states
