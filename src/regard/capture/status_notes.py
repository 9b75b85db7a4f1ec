"""Write the notes of a trace's status: what was left out of it, and what a reader has to know to rely on it."""

from collections import Counter
from collections.abc import Mapping, Sequence

from torch import Tensor

from regard.attention.recording import Call
from regard.capture.eager_attention import KERNEL, NOTE, ROUNDED
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.state import Capture
from regard.trace.layer_subset import CallNumber

OTHER_WEIGHTS = (
    "The model's attention function reports weights that don't produce its output. regard shows the weights that do."
)
OTHER_OUTPUTS = "Weights and outputs differ from the model's own. Don't rely on them."
CONTRARY = "The model's eager attention sees every token, as shown here. PyTorch's kernel would attend causally."
NO_OUTPUTS = "Attention block outputs were left out, so there are no contributions."
FROM_WITHIN = "Tokens before the first change were not recomputed. Their keys and values are from the unchanged pass."
WHOLE_TEXT = (
    "Tokens before the first change were recomputed, because this model can't reuse their keys and values alone."
)
REUSED = (FROM_WITHIN, WHOLE_TEXT)
# Differences from which on weights and outputs are not the family's own. Rounding in float32 stays far below both; a
# mask or a scale that was misread is far above.
WEIGHTS_APART, OUTPUTS_APART = 1e-4, 1e-5


def notes_on_capture_options(keep: CaptureOptions, depth: int, has_head: bool) -> tuple[str, ...]:
    """What was left out because it was not asked for. depth: how many layers there are. has_head: a language head."""
    notes: tuple[str, ...] = ()
    if keep.layers == NO_LAYERS:
        notes += ("No layers were kept, so no weights were checked.",)
    elif keep.layers is not None:
        notes += (f"The trace has only layers {', '.join(map(str, sorted(keep.layers)))} of {depth}.",)
    if not keep.attention:
        notes += ("No attention was kept, so no weights were checked.",)
    if not keep.logits and has_head:
        notes += ("Logits were left out.",)
    if not keep.attention_outputs and keep.attention:
        notes += (NO_OUTPUTS,)
    return notes


def of_calls(calls: Mapping[CallNumber, Call], made: Sequence[CallNumber], depth: int, longest: int) -> tuple[str, ...]:
    """Which layers have attention, which make several calls of it, and which attend to more than the tokens."""
    counts = Counter(layer for layer, _ in made)
    notes: tuple[str, ...] = ()
    if len(counts) < depth:  # hybrids
        notes += (f"Layers with attention: {', '.join(map(str, sorted(counts)))} (of {depth}).",)
    several = [layer for layer, count in sorted(counts.items()) if count > 1]
    if several:  # DiffLlama
        which = ", ".join(map(str, several))
        notes += (
            f"Layers {which} call attention several times: attention[n] is the first call, attention[n, 1] the second.",
        )
    more = [layer for (layer, _), call in calls.items() if call.weights.shape[-1] != longest]
    if more:
        which = ", ".join(map(str, dict.fromkeys(more)))
        notes += (f"In layers {which}, some keys are not tokens of the text. The weights include them.",)
    return notes


def of_model(capture: Capture, calls: Sequence[Call], states: Mapping[int, Tensor], itemsize: int) -> tuple[str, ...]:
    """What is particular to the model's family."""
    notes: tuple[str, ...] = ()
    reported = any(call.kernel == KERNEL for call in calls)
    if (capture.comparison.weights or 0.0) > WEIGHTS_APART and not reported:
        notes += (OTHER_WEIGHTS if capture.comparison.outputs <= OUTPUTS_APART else OTHER_OUTPUTS,)
    streams = [state.shape[1] for state in states.values() if state.ndim == 3]
    if streams:
        notes += (f"Each token has {streams[0]} residual streams, so hidden states have shape (L, {streams[0]}, M).",)
    if capture.contradiction:
        notes += (CONTRARY,)
    if reported:
        notes += (NOTE,) if itemsize >= 4 else (NOTE, ROUNDED)
    if capture.written_masks:
        notes += ("Masks are stored as tensors, because this model computes with them.",)
    return notes
