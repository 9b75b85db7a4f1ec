"""Check what a trace has of one pass against the model's own code: weights, states, logits, padded or not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.capture.options import CaptureOptions
from regard.capture.prefix import LayerReuse
from regard.errors import RegardError
from regard.questions.check.claims import FAILS, MOST, SUMS, TIMES, VECTORS, WEIGHTS, Apart, Claim, claim, half_units
from regard.questions.check.differences import (
    distance,
    own_states_apart,
    own_weights_apart,
    result_apart,
    states_apart,
    weights_apart,
)  # fmt: skip
from regard.questions.check.own_code import OwnPass, own_pass, plain_pass
from regard.questions.check.readings import Reading, own_inputs, takes_positions
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model


OwnRounding = Callable[[OwnPass, OwnPass], float | None]


@dataclass(frozen=True, eq=False)
class Read:
    """A reading with what the model's own code makes of it, computed when it is asked for.

    trace: of the reading alone.
    """

    model: "Model"
    reading: Reading

    @cached_property
    def trace(self) -> Trace | PairTrace:
        """The trace of the reading alone."""
        return self.model.trace(**self.reading.asked)

    @property
    def half(self) -> float:
        """What numbers near 1 may be off in the model's precision, where that is half; 0 in any other."""
        return half_units(self.model.model.dtype)

    def rounded(self, least: float) -> float:
        """Widen a bound where the own code does not run in float64, so that what it rounds itself is not known."""
        return least if self.exact is not None else TIMES * least

    @cached_property
    def encoded(self) -> tuple[Encoded, Encoded | None]:
        """What is read, as tokens: of a text, and of an encoder-decoder of its target."""
        asked, read = self.reading.asked, self.model._reader.read
        (source,) = read("text", *([asked[name]] if name in asked else None for name in ("text", "ids")))[1]
        if not self.model.pairs:
            return source, None
        (target,) = read("target", *([asked[name]] if name in asked else None for name in ("target", "target_ids")))[1]
        return source, target

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What the model's forward is given for it."""
        return {**own_inputs(self.model, [self.reading]), **self.reading.beside}

    @cached_property
    def own(self) -> OwnPass:
        """What the model's own eager code reports."""
        return own_pass(self.model.model, self.inputs)

    @cached_property
    def exact(self) -> OwnPass | None:
        """What it reports in float64, None where it does not run in float64."""
        try:
            return own_pass(self.model.model, self.inputs, widened=True)
        except RegardError:  # families insist on float32 in many ways
            return None


def weights_are_its_own(read: Read) -> Iterator[Claim]:
    """Check every weight against those that the model's eager code reports."""
    apart, said = weights_apart(read.trace, read.own), "weights are its own code's"
    if apart is None:
        raise RegardError("its own eager code gives no weights to compare with")
    yield _as_reported(read, "attention", said, apart, own_weights_apart, WEIGHTS)


def states_are_its_own(read: Read) -> Iterator[Claim]:
    """Check every state between layers against those that the model's eager code reports."""
    apart, said = states_apart(read.trace, read.own), "states are its own code's"
    if apart is None:
        raise RegardError("it reports other states than those between its layers")
    yield _as_reported(read, "states", said, apart, own_states_apart, VECTORS)


def _as_reported(read: Read, area: str, said: str, apart: Apart, rounding: OwnRounding, least: float) -> Claim:
    own = None if read.exact is None else rounding(read.own, read.exact)
    return claim(area, said, read.reading.name, apart, read.rounded(least), own, half=read.half)


def result_is_its_own(read: Read) -> Iterator[Claim]:
    """Check the last states and the logits against a plain pass, by whatever kernel the model is set to."""
    plain = plain_pass(read.model.model, read.inputs)
    apart = result_apart(read.trace, plain)
    if apart is None:
        raise RegardError("its plain pass gives neither last states nor logits")
    own = None if read.exact is None else distance(plain.result[0], read.exact.result[0])
    said = "results are a plain pass's"
    yield claim("result", said, read.reading.name, apart, read.rounded(VECTORS), own, half=read.half)


def parts_add_up_to_input(read: Read) -> Iterator[Claim]:
    """Check that the parts of the embeddings add up to what enters the first layer."""
    for side in read.trace.sides:
        apart = side.status.embedding_difference
        if apart is None or side.input is None:
            raise RegardError("the parts of its input are not known")
        apart /= max(1.0, float(side.input.abs().max()))
        if apart > max(MOST, read.half):  # no rounding: its input is made of more than tables
            raise RegardError(f"what its tables give is {apart:.0e} off its input, as the status of its traces says")
        said = "embedding parts add up to the input"
        yield claim("embeddings", said, read.reading.name, Apart.of(apart), SUMS, half=read.half)


def batch_is_as_alone(model: "Model", reads: Sequence[Read]) -> Iterator[Claim]:
    """Check texts that are traced in one batch, shorter ones padded on the right, against own code's passes alone."""
    try:
        together = _traced_together(model, [each.reading for each in reads])
    except RegardError:
        raise
    except Exception:
        own_pass(model.model, own_inputs(model, [each.reading for each in reads]))  # refused where it fails too
        raise
    for side in (side for trace in together for side in trace.sides):
        if any("keys that are no tokens" in note for note in side.status.notes):
            raise RegardError("it adds keys that are no tokens of the text, as many as the longest of a batch needs")
    for said, least, measure in (
        ("weights in a batch are those alone", WEIGHTS, weights_apart),
        ("results in a batch are those alone", VECTORS, result_apart),
    ):
        found = [(measure(trace, each.own), each) for trace, each in zip(together, reads, strict=True)]
        known = [(apart, each) for apart, each in found if apart is not None]
        if known:
            apart, each = max(known, key=lambda pair: pair[0].difference)
            own = None if each.exact is None else _rounding(each.own, each.exact, least)
            made = claim("padding", said, "padded on the right", apart, each.rounded(least), own, half=each.half)
            if made.outcome == FAILS:
                _check_own_batch(model, reads)
            yield replace(made, where=f"{each.reading.name}: {apart.where}")


def _check_own_batch(model: "Model", reads: Sequence[Read]) -> None:
    """Raise RegardError where the model's own code, too, does not give texts in a batch what it gives them alone."""
    batch = own_pass(model.model, own_inputs(model, [each.reading for each in reads]))
    for n, each in enumerate(reads):
        for side, layers in each.own.weights.items():
            for alone, padded in zip(layers, batch.weights[side], strict=True):
                rows, keys = alone.shape[-2:]
                if not float((padded[n, :, :rows, :keys] - alone[0]).abs().max()) <= VECTORS:
                    raise RegardError("its own code gives other weights in a padded batch than to a text alone")


def left_padding_is_its_own(model: "Model", reads: Sequence[Read]) -> Iterator[Claim]:
    """Check weights of a batch that is padded on the left against the model's own code on the same batch."""
    if "attention_mask" not in model._session.takes:
        raise RegardError("its forward takes no attention mask")
    if len(reads) == 1:
        raise RegardError("one text needs no padding: give two of different lengths")
    inputs = left_padded(model, own_inputs(model, [each.reading for each in reads]))
    if "attention_mask" not in inputs:
        raise RegardError(f"its {len(reads)} texts have as many tokens each, which needs no padding")
    own = own_pass(model.model, inputs)
    sources = [each.encoded[0] for each in reads]
    targets = [target for each in reads if (target := each.encoded[1]) is not None] or None
    keep = CaptureOptions(logits=False, attention_outputs=False, embeddings=False)
    reuse = LayerReuse(inputs=lambda _: dict(inputs) | ({"use_cache": False} if "use_cache" in inputs else {}))
    done = model._session.run(sources, targets, [()] * len(sources), keep, reuse)
    reported = own.weights.get("encoder_" if model.pairs else "", [])
    calls = [call.weights for call in done.calls][: len(reported) if model.pairs else None]  # the encoder's come first
    if not reported or not calls or len(calls) % len(reported):
        raise RegardError("its own code reports other attention calls than are seen")
    worst = Apart(0.0)
    for layer, (mine, theirs) in enumerate(zip(calls[:: len(calls) // len(reported)], reported, strict=True)):
        dense = mine.dense()
        if bool(theirs.isnan().any()):
            raise RegardError("its own code, padded on the left, gives weights that are no numbers (NaN)")
        for n, source in enumerate(sources):
            real = slice(dense.shape[2] - len(source.tokens), None)
            apart = float((dense[n, :, real] - theirs[n, :, real]).abs().max())
            there = Apart.of(apart, f"layer {layer}, {reads[n].reading.name}")
            worst = max(worst, there, key=lambda each: each.difference)
    rounds = max((_rounding(each.own, each.exact, WEIGHTS) or 0.0 for each in reads if each.exact), default=None)
    said, of, least = "weights padded on the left are its code's", "padded on the left", reads[0].rounded(WEIGHTS)
    yield claim("padding", said, of, worst, least, rounds, half=reads[0].half)


def left_padded(model: "Model", inputs: dict[str, Any]) -> dict[str, Any]:
    """Move the padding of a batch from the right to the left, with positions counted from each text's first token."""
    mask = inputs.get("attention_mask")
    if mask is None:
        return inputs
    counts = mask.sum(-1).tolist()
    moved: dict[str, Any] = {
        name: torch.stack([row.roll(int(len(row) - n), 0) for row, n in zip(each, counts, strict=True)])
        if isinstance(each, Tensor) and each.shape[:2] == mask.shape and not name.startswith("decoder_")
        else each
        for name, each in inputs.items()
    }
    if takes_positions(model):
        moved["position_ids"] = (moved["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    return moved


def _traced_together(model: "Model", readings: Sequence[Reading]) -> list[Any]:
    names = {name for each in readings for name in each.asked}
    asked: dict[str, Any] = {name: [each.asked[name] for each in readings] for name in names}
    return model.trace(**asked)


def _rounding(own: OwnPass, exact: OwnPass, least: float) -> float | None:
    return own_weights_apart(own, exact) if least == WEIGHTS else distance(own.result, exact.result)
