"""What generation has in common for every model: the request checked, prompts read, one text written after another."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from regard.attention.map_statistics import Statistics
from regard.capture.interventions.resolve import Intervention, checked
from regard.capture.options import statistics_to_capture
from regard.capture.session import Session
from regard.checks import check_seed
from regard.errors import RegardError
from regard.generation.settings import stops
from regard.lazy import from_above
from regard.shown import Shown
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

Ended = Literal["end", "stop", "length"]
S = TypeVar("S")  # how tokens are chosen, as a generator keeps it


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
    cache: str
    stop: list[str]
    interventions: tuple[Intervention, ...]
    settings: S
    notes: tuple[str, ...]
    statistics: Statistics | None = None
    progress: Callable[[str], None] | None = None


class Generator(ABC, Generic[S]):
    """Generates text with one model and traces it. notes: the model's own, for every trace's status.

    caches: the kinds of key/value cache that it can use.
    """

    caches: ClassVar[tuple[str, ...]]

    def __init__(self, session: Session, reader: Reader, notes: tuple[str, ...]) -> None:
        self._session, self._reader, self._notes = session, reader, notes
        self._model, self._name, self._pairs = session.model, session.name, session.pairs

    def generate(
        self,
        prompt: str | Sequence[str] | None,
        ids: Ids | None,
        max_new_tokens: int,
        seed: int | None,
        cache: str,
        stop: str | Sequence[str],
        interventions: Sequence[Intervention],
        statistics: bool | Statistics,
        progress: Callable[[str], None] | None,
        options: dict[str, Any],
    ) -> Generated | list[Generated]:
        """Check the request, read the prompts, and write to each of them; see `Model.generate`."""
        self.check_model()
        if cache not in self.caches:
            raise RegardError(f"generate: cache: given {cache!r}, needs {' or '.join(map(repr, self.caches))}")
        if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
            raise RegardError(f"generate: max_new_tokens: given {max_new_tokens!r}, needs a whole number of 1 or more")
        if seed is not None:
            check_seed(seed)
        settings, notes = self.settings(options, max_new_tokens, seed)
        for intervention in interventions:
            checked(intervention)  # refuses anything else
        strings = stops(stop, self._reader.tokenizer, self._name)
        wanted = statistics_to_capture(statistics)
        request = Request(max_new_tokens, seed, cache, strings, tuple(interventions), settings, notes, wanted, progress)
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
    def generate_one(self, prompt: Encoded, request: Request[S]) -> Generated:
        """Write to one prompt and trace all of it."""

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
