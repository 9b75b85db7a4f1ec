"""Run a text that was traced once more with gradients, as a trace whose numbers can be differentiated."""

import copy
from typing import TYPE_CHECKING

from torch import Tensor

from regard.capture.gradient_pass import Exchange, GradientPass, gradient_pass
from regard.errors import RegardError
from regard.models.inputs import model_source_of_trace
from regard.text.tokens import encoded_ids
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model

SAME = 1e-3  # of its length: how far the last hidden state may be from the trace's


def gradient_run(
    model: "Model", trace: Trace | PairTrace, exchange: Exchange | None = None, *, heads: bool = False
) -> tuple[GradientPass, Trace | PairTrace]:
    """Run a trace's tokens again with gradients.

    exchange: puts others in the place of learned embeddings. heads: whether the pass keeps what each head gives.
    Returns the pass, and the trace with contextual embeddings and logits that are part of the pass's graph in the place
    of its own.

    Raises:
        RegardError: the trace is not of this model, or as `gradient_pass`.
    """
    if not isinstance(trace, (Trace, PairTrace)) or isinstance(trace, PairTrace) != model.pairs:
        needs = "the trace of a text and its target" if model.pairs else "the trace of one text"
        raise RegardError(f"gradients: given {type(trace).__name__}, needs {needs}, of {model.name}")
    source, *targets = trace.sides
    read = model_source_of_trace(model._reader, source)
    target = encoded_ids([token.id for token in targets[0].tokens]) if targets else None
    session = model._session
    done = gradient_pass(session, read, target, session.layout.stacks(read, target), exchange, heads=heads)
    side = copy.copy(trace.sides[-1])
    assert done.contextual is not None
    if exchange is None:
        apart = _relative_difference(done.contextual, side.contextual)
        if not apart <= SAME:
            raise RegardError(
                f"gradients: run again, the last hidden state is {apart:.1e} of its length from the trace's: the trace "
                f"has to be of {model.name}, without interventions"
            )
    side.contextual, side.logits = done.contextual, done.logits
    if isinstance(trace, Trace):
        return done, side
    pair = copy.copy(trace)
    pair.decoder = side
    return done, pair


def _relative_difference(one: Tensor, other: Tensor) -> float:
    """How far two tensors are from each other, as a part of the length of one."""
    if one.shape != other.shape:
        return float("inf")
    return float((one.detach() - other.to(one.device)).norm() / other.norm().clamp_min(1e-30))
