"""What generation has in common for every model: check the request, read the prompts, write, trace what was written.

The model writes uncaptured. The trace is one ordinary pass over the finished text, as `Model.trace` makes it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from jaxtyping import Float
from torch import Tensor

from regard.attention.map_statistics import Statistics
from regard.capture.interventions.resolve import Intervention, checked
from regard.capture.options import NO_LAYERS, CaptureOptions, statistics_to_capture
from regard.capture.session import Session
from regard.checks import check_seed
from regard.errors import RegardError
from regard.generation.settings import stops
from regard.generation.unwritten import with_prompt_tokens, written_part
from regard.lazy import from_above
from regard.shown import Shown
from regard.text.continuation import begun, continued
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded, encoded_ids
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

Ended = Literal["end", "stop", "length"]
S = TypeVar("S")  # how tokens are chosen, as a generator keeps it
# (source, target of an encoder-decoder, interventions, statistics) -> trace
TraceOne = Callable[[Encoded, Encoded | None, Sequence[Intervention], Statistics | None], Trace | PairTrace]

CACHED = "The text was generated with a KV cache. The trace is one pass over the finished text."
FULL_PASSES = (
    "Each token was chosen from a full pass with the interventions. The trace is one such pass over the finished text."
)
LOGITS = CaptureOptions(NO_LAYERS, attention_outputs=False, embeddings=False, compare=False)


@dataclass(frozen=True, eq=False)
class Generated(Shown):
    """A text that a model wrote. It shows itself as its trace does.

    text: all of it, prompt included; of an encoder-decoder what its decoder wrote. new: what was written. ids: of every
    token, special ones included; the first written one is ids[start]. trace: of all these tokens (a `PairTrace` of an
    encoder-decoder). ended: "end" where the model wrote an end token, "stop" at a stop string, "length" where it had
    written all the tokens that were asked for. model: what wrote it, which the logit lens needs.
    """

    text: str
    new: str
    ids: tuple[int, ...]
    start: int
    ended: Ended
    trace: Trace | PairTrace = field(repr=False)
    model: Any = field(default=None, repr=False)

    def plot(self, word: str | None = None, **how: Any) -> "Figure":
        """Draw the trace: of a translation its alignment. how: as of `Trace.plot`."""
        return self.trace.plot(word, **how)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """Return what a notebook shows of it: what was written and how surely, then its trace."""
        return from_above("generated_parts")(self, width)


@dataclass(frozen=True)
class Request(Generic[S]):
    """What one call of `generate` asks of every prompt, checked.

    stop: the strings at which to stop. interventions: as given, their words not looked up yet. settings: how tokens are
    chosen, as `Generator.settings` gives it. notes: what of the model's own settings could not be followed.
    statistics: of every attention map of the trace, None for none. progress: told the text so far after each token.
    """

    max_new_tokens: int
    seed: int | None
    stop: list[str]
    interventions: tuple[Intervention, ...]
    settings: S
    notes: tuple[str, ...]
    statistics: Statistics | None = None
    progress: Callable[[str], None] | None = None


class Generator(ABC, Generic[S]):
    """Generates text with one model and traces it. trace: makes the trace of one text with everything kept."""

    def __init__(self, session: Session, reader: Reader, trace: TraceOne) -> None:
        self._session, self._reader, self._trace = session, reader, trace
        self._model, self._name, self._pairs = session.model, session.name, session.pairs

    def generate(
        self,
        prompt: str | Sequence[str] | None,
        ids: Ids | None,
        max_new_tokens: int,
        seed: int | None,
        stop: str | Sequence[str],
        interventions: Sequence[Intervention],
        statistics: bool | Statistics,
        progress: Callable[[str], None] | None,
        options: dict[str, Any],
    ) -> Generated | list[Generated]:
        """Check the request, read the prompts, and write to each of them; see `Model.generate`."""
        self.check_model()
        if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
            raise RegardError(f"generate: max_new_tokens: given {max_new_tokens!r}, needs a whole number of 1 or more")
        if seed is not None:
            check_seed(seed)
        settings, notes = self.settings(options, max_new_tokens, seed)
        for intervention in interventions:
            checked(intervention)  # refuses anything else
        strings = stops(stop, self._reader.tokenizer, self._name)
        wanted = statistics_to_capture(statistics)
        request = Request(max_new_tokens, seed, strings, tuple(interventions), settings, notes, wanted, progress)
        single, prompts = self._reader.read("prompt", prompt, ids)
        prompts = [self.open_ended(encoded) for encoded in prompts]
        for number, encoded in enumerate(prompts, 1):
            self._check_room("prompt" if single else f"prompt {number}", encoded, max_new_tokens)
        generated = [self.generate_one(encoded, request) for encoded in prompts]
        return generated[0] if single else generated

    @abstractmethod
    def check_model(self) -> None:
        """Raise RegardError where the model cannot generate text."""

    @abstractmethod
    def settings(self, options: dict[str, Any], max_new_tokens: int, seed: int | None) -> tuple[S, tuple[str, ...]]:
        """Check the options; returns how tokens are chosen, and notes on settings that were put aside."""

    @abstractmethod
    def start(self, request: Request[S]) -> int:
        """Return the id that an encoder-decoder's target begins with."""

    @abstractmethod
    def write(
        self, prompt: Encoded, begun: Encoded, request: Request[S], changes: Sequence[Intervention]
    ) -> tuple[list[int], bool]:
        """Write to one prompt, uncaptured. Return the ids of the whole text, and whether an end token is the last.

        begun: the text that is gone on with: the prompt, of an encoder-decoder the start token.
        """

    def generate_one(self, prompt: Encoded, request: Request[S]) -> Generated:
        """Write to one prompt and trace all of it."""
        started, tokenizer = time.perf_counter(), self._reader.tokenizer
        before = begun(tokenizer, self.start(request)) if self._pairs else prompt
        first = len(before.tokens)
        changes = with_prompt_tokens(request.interventions, prompt, self._pairs, self._name)
        room = encoded_ids([0] * (first + request.max_new_tokens))
        self._session.structure.changes(*self._batch(prompt, room), [changes])  # refuses tokens beyond it
        ids, at_end = self.write(prompt, before, request, changes)
        whole = continued(tokenizer, before, ids[first:])
        source, target = (prompt, whole) if self._pairs else (self._with_segments(prompt, whole), None)
        parts = [written_part(change, len(ids)) for change in changes]
        trace = self._trace(source, target, [part for part in parts if part is not None], request.statistics)
        late = [change for change, part in zip(changes, parts, strict=True) if part is None]
        for side in trace.sides:
            side.status.seconds = time.perf_counter() - started
            side.status.notes += (FULL_PASSES if changes else CACHED, *request.notes)
            side.status.notes += tuple(f"The text ended before this took effect: {change}." for change in late)
        new = whole.text[len(before.text) :]
        ended: Ended = "end" if at_end else "length"
        if not at_end and (len(ids) < len(room.tokens) or any(string in new for string in request.stop)):
            ended = "stop"
        return Generated(whole.text, new if before.text else new.lstrip(), tuple(ids), first, ended, trace)

    def logits(self, prompt: Encoded, ids: Sequence[int], changes: Sequence[Intervention]) -> Float[Tensor, "1 L V"]:
        """Compute the logits of the text so far, ids, in one pass with the interventions on its tokens."""
        parts = [part for change in changes if (part := written_part(change, len(ids)))]
        done = self._session.run(*self._batch(prompt, encoded_ids(ids)), [parts], LOGITS)
        assert done.logits is not None
        return done.logits

    def _batch(self, prompt: Encoded, text: Encoded) -> tuple[list[Encoded], list[Encoded] | None]:
        """Sources and targets of a batch of this text, which an encoder-decoder writes to a prompt."""
        return ([prompt], [text]) if self._pairs else ([self._with_segments(prompt, text)], None)

    @staticmethod
    def _with_segments(prompt: Encoded, text: Encoded) -> Encoded:
        """The text with the prompt's segments, of which the last goes on."""
        if prompt.segments is None:
            return text
        more = len(text.tokens) - len(prompt.tokens)
        return replace(text, segments=(*prompt.segments, *prompt.segments[-1:] * more))

    def open_ended(self, prompt: Encoded) -> Encoded:
        """Return the prompt as the model is to continue it."""
        return prompt

    def _check_room(self, name: str, prompt: Encoded, max_new_tokens: int) -> None:
        """Refuse more tokens than the model has positions for."""
        limit, taken = self._reader.limit, 1 if self._pairs else len(prompt.tokens)
        if limit is None or taken + max_new_tokens <= limit:
            return
        left = limit - taken
        most = f"max_new_tokens can be {left} at most" if left > 0 else "there is no room left"
        what = "the start token" if self._pairs else f"{name} has {taken} tokens"
        raise RegardError(
            f"generate: {what} and {max_new_tokens} new ones are more than the {limit} that {self._name} takes: {most}"
        )
