"""Run a text that was traced once more with gradients, as a trace whose numbers can be differentiated."""

import copy
import math
from functools import partial
from typing import TYPE_CHECKING

from regard.capture.gradient_pass import Exchange, GradientPass, gradient_pass
from regard.capture.hf_masks import TensorMaskError
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

    exchange: puts others in the place of token embeddings. heads: whether the pass keeps what each head gives. Returns
    the pass, and the trace with contextual embeddings and logits that are part of the pass's graph.
    """
    if not isinstance(trace, (Trace, PairTrace)) or isinstance(trace, PairTrace) != model.pairs:
        needs = "the trace of a text and its target" if model.pairs else "the trace of one text"
        raise RegardError(f"gradients: given {type(trace).__name__}, needs {needs}, of {model.name}")
    source, *targets = trace.sides
    read = model_source_of_trace(model._reader, source)
    target = encoded_ids([token.id for token in targets[0].tokens]) if targets else None
    session = model._session
    run = partial(gradient_pass, session, read, target, session.layout.stacks(read, target), exchange, heads=heads)
    try:
        done = run()
    except TensorMaskError:
        done = run(written_masks=True)
    side = copy.copy(trace.sides[-1])
    assert done.last_hidden_state is not None
    if exchange is None:
        now, then = done.last_hidden_state.detach(), side.last_hidden_state.to(done.last_hidden_state.device)
        apart = float((now - then).norm() / then.norm().clamp_min(1e-30)) if now.shape == then.shape else math.inf
        if not apart <= SAME:
            raise RegardError(
                f"gradients: run again, the last hidden state is {apart:.1e} of its length from the trace's: the trace "
                f"has to be of {model.name}, without interventions"
            )
    side.last_hidden_state, side.logits = done.last_hidden_state, done.logits
    if isinstance(trace, Trace):
        return done, side
    pair = copy.copy(trace)
    pair.decoder = side
    return done, pair
