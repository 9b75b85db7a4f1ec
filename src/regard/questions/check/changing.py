"""Prepare a text whose pass is changed: its attention calls, and another text to patch it from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from regard.capture.interventions.given import Intervention
from regard.capture.interventions.names import Part
from regard.errors import RegardError
from regard.questions.check.claims import TIMES, VECTORS, Claim, claim
from regard.questions.check.differences import distance, result_apart
from regard.questions.check.own_code import Changes, OwnPass, changed_pass
from regard.questions.check.passes import Read
from regard.questions.check.readings import Reading
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model

AREA = "interventions"
HEADS = 3  # attention calls that are changed
SHARE, ROUNDS = 0.1, 1e-6  # of what a change changes, how far it may be off; and what is rounding in any case


@dataclass(frozen=True)
class AttentionCall:
    """An attention call of the model's own code. number: in the order of a pass.

    part, layer: where it is. nth: which of the layer's calls. heads, queries, keys: how many it has.
    """

    number: int
    part: Part | None
    layer: int
    nth: int
    heads: int
    queries: int
    keys: int


@dataclass(frozen=True, eq=False)
class Changing:
    """A text whose pass is changed, and another of as many tokens that patches are taken from."""

    read: Read

    @property
    def model(self) -> "Model":
        """The model that is checked."""
        return self.read.model

    @property
    def part(self) -> Part | None:
        """The stack whose states are changed: of a pair the decoder."""
        return "decoder" if self.model.pairs else None

    @cached_property
    def calls(self) -> list[AttentionCall]:
        """The attention calls that can be changed, in the order in which the model's own code makes them.

        Raises:
            RegardError: its own code, run as changed passes are, gives another result.
        """
        apart = distance(changed_pass(self.model.model, self.read.inputs, Changes()).result[0], self.read.own.result[0])
        if not apart <= max(VECTORS, self.read.half):
            raise RegardError(f"its own code run call by call gives another result ({apart:.0e} apart)")
        trace = self.read.trace
        if isinstance(trace, Trace):
            calls = enumerate(call_numbers(trace.attention))
            return [_call(n, None, layer, trace.attention[layer, nth], nth) for n, (layer, nth) in calls]
        found: list[AttentionCall] = []
        for layer in range(len(trace.encoder.attention)):
            found.append(_call(len(found), "encoder", layer, trace.encoder.attention[layer]))
        for layer in range(len(trace.decoder.attention)):
            found.append(_call(len(found), "decoder", layer, trace.decoder.attention[layer]))
            found.append(_call(len(found), "cross", layer, trace.decoder.cross[layer]))
        return found

    @property
    def chosen(self) -> list[AttentionCall]:
        """A few calls, of the first layers to the last, and of each part of a pair."""
        longest = [each for each in self.calls if each.keys > 1] or self.calls
        steps = max(1, (len(longest) - 1) // (HEADS - 1))
        return [longest[min(n * steps, len(longest) - 1)] for n in range(HEADS)]

    @cached_property
    def other(self) -> Read:
        """A text of as many tokens: the same ones, those within it in the opposite order."""
        trace = self.read.trace
        rows = [[token.id for token in side.tokens] for side in trace.sides]
        turned = [[*ids[:1], *ids[-2:0:-1], *ids[-1:]] for ids in rows]
        asked: dict[str, Any] = {"ids": turned[0]} | ({"target_ids": turned[1]} if self.model.pairs else {})
        return Read(self.model, Reading("the same in the opposite order", asked))

    def place(self, side: int = -1) -> int:
        """Choose a token that is another one in the other text. side: of a pair, whether of its text (0) or target.

        Raises:
            RegardError: there is none.
        """
        ours, theirs = ([token.id for token in each.trace.sides[side].tokens] for each in (self.read, self.other))
        differ = [n for n, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]
        if not differ:
            raise RegardError("its tokens in the opposite order are the same text")
        return differ[len(differ) // 2]

    @cached_property
    def paths(self) -> list[str]:
        """The paths of the layers' modules: of the text, of an encoder-decoder of the decoder."""
        path, count = self.model._session.layout.stacks(*self.other.encoded)[-1]
        if len(self.model.model.get_submodule(path)) < count:
            raise RegardError("its layers share modules: what one is given is given to several")
        return [f"{path}.{n}" for n in range(count)]

    @property
    def ids(self) -> "Changing":
        """The same, read as ids alone, as the other text is: without token types of a tokenizer's own."""
        rows = [[token.id for token in side.tokens] for side in self.read.trace.sides]
        asked: dict[str, Any] = {"ids": rows[0]} | ({"target_ids": rows[1]} if self.model.pairs else {})
        return Changing(Read(self.model, Reading(self.read.reading.name, asked)))

    def traced(self, interventions: Sequence[Intervention]) -> Trace | PairTrace:
        """Trace the text with something done to the pass."""
        return self.model.trace(**self.read.reading.asked, interventions=interventions)

    def own(self, changes: Changes) -> OwnPass:
        """Run the model's own code with the same done to it."""
        return changed_pass(self.model.model, self.read.inputs, changes)

    def claim(self, said: str, of: str, interventions: Sequence[Intervention], changes: Changes) -> Claim:
        """Claim that a changed trace ends as the model's own changed code does, far nearer than it was changed."""
        own = self.own(changes)
        apart, effect = result_apart(self.traced(interventions), own), distance(own.result[0], self.read.own.result[0])
        if apart is None:
            raise RegardError("its own code reports no result to compare with")
        if not effect > 0:
            raise RegardError("it changes nothing in the model's own code")
        made = claim(AREA, said, of, apart, self.read.rounded(VECTORS), self.rounding, half=self.read.half)
        most = max(SHARE * effect, TIMES * max(ROUNDS, self.read.half, self.rounding or 0.0))
        return replace(made, bound=min(made.bound or 0.0, most), where=f"it changes {effect:.0e}")

    @cached_property
    def rounding(self) -> float | None:
        """How far the own code's result is from float64, unchanged."""
        return None if self.read.exact is None else distance(self.read.own.result[0], self.read.exact.result[0])


def _call(number: int, part: Part | None, layer: int, weights: Any, nth: int = 0) -> AttentionCall:
    return AttentionCall(number, part, layer, nth, *weights.shape)
