"""Keep each head's output, and its values, of a pass that is differentiated: tensors of the pass's own graph.

With z = W v a head's output (W its weights, v its values) and g = ∂outcome/∂z, the gradient by v is Wᵀ g. So v · Wᵀ g
is what each source token brought through the head, with the weights as they were, and nothing of n × n is needed.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import current_call_path, hooked_calls
from regard.capture.hooks import record_layers
from regard.capture.interventions.call_ids import CallId, CallNumbering
from regard.capture.options import CaptureOptions
from regard.capture.session import Session
from regard.capture.state import Capture
from regard.errors import RegardError


@dataclass(frozen=True, eq=False)
class HeadCall:
    """One attention call. output: its heads', before W_O. value: one for each head, where heads share them too."""

    call: CallId
    output: Float[Tensor, "1 H L E"]
    value: Float[Tensor, "1 H S E"]


@dataclass
class HeadCalls:
    """Stands around attention calls (`recording.CallHook`) and keeps what a trace shows of them, in order."""

    numbering: CallNumbering
    found: list[HeadCall] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)

    def before(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give each head keys and values of its own, for gradients by these to be told apart by head."""
        shared = query.shape[1] // value.shape[1]
        if shared > 1:
            key, value = (each.repeat_interleave(shared, 1) for each in (key, value))
        return query, key, value

    def after(self, weights: AttentionMap, value: Tensor, output: Tensor) -> Tensor:
        """Keep the call."""
        path = current_call_path()
        call = self.numbering(path, self._counts[path])
        self._counts[path] += 1
        if call is not None:
            self.found.append(HeadCall(call, output, value))
        return output


@contextmanager
def kept_head_outputs(session: Session, *, written_masks: bool = False) -> Iterator[HeadCalls]:
    """Run attention through regard inside the block, and keep what its heads gave."""
    if session.reports_weights:
        raise RegardError(f"heads of {session.name}: its attention does not go through regard: they are not seen")
    keep = CaptureOptions(attention_outputs=False, embeddings=False, compare=False)
    capture = Capture(session.module_paths, keep=keep, compare=False, written_masks=written_masks)
    kept = HeadCalls(CallNumbering(session.model, capture, pairs=session.pairs))
    with session.capture_attention(capture), record_layers(session.model, capture), hooked_calls(kept):
        yield kept
