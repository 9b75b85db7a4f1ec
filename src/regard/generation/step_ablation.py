"""Apply ablations of a whole text to the passes of its generation, each of which has some rows of every matrix.

An edge is a query and a key of the whole text. The first pass has the rows of the prompt, each later one the row of one
new token; the keys of a pass may begin later than the text, where a sliding cache has dropped older ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager as ContextManager
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from torch import nn

from regard.attention.ablation import Ablation, OpenAblations, OutOfRangeError, ablating
from regard.attention.recording import Calls
from regard.capture.ablation import Applied, ablations_of
from regard.capture.call_ids import Numbering
from regard.capture.hf_attention import Capture
from regard.capture.hidden_states import LayerStack
from regard.capture.interventions import Ablate, Edge, Intervention, Place, target_of
from regard.errors import RegardError
from regard.generation.join_steps import Place as Rows
from regard.generation.join_steps import within_pass
from regard.text.tokens import Encoded, encoded_ids
from regard.text.words import Word, find_word


def with_tokens(
    interventions: Sequence[Intervention], source: Encoded, paired: bool, name: str
) -> tuple[Intervention, ...]:
    """Interventions whose words are looked up in the prompt: what is written later may contain them again.

    paired: of an encoder-decoder, whose target has no words before it is written.

    Raises:
        RegardError: a word that is not in the prompt, or one of the target.
    """

    def resolved(place: Place, in_target: bool) -> Place:
        if not isinstance(place, str):
            return place
        if in_target:
            raise RegardError(
                f"interventions: {place!r} is a word of the target, which {name} has not written yet: give the numbers "
                "of its tokens"
            )
        words = find_word(source.text, source.tokens, place)
        tokens = sorted({token for word in words for token in word.tokens})
        return Word(place, words[0].start, words[-1].end, tuple(tokens))

    found: list[Intervention] = []
    for each in interventions:
        edge = target_of(each)
        if isinstance(edge, Edge):
            query = resolved(edge.query, paired and edge.part != "encoder")
            key = resolved(edge.key, paired and edge.part not in ("encoder", "cross"))
            each = Ablate(replace(edge, query=query, key=key))
        found.append(each)
    return tuple(found)


def whole_text_ablations(
    interventions: Sequence[Intervention], prompt: Encoded, paired: bool, new_tokens: int, name: str
) -> list[Ablation]:
    """The ablations of the whole text's matrices; interventions: as `with_tokens` gives them.

    Raises:
        RegardError: a token that the text cannot have, or a part that is missing or not wanted.
    """
    if paired:
        return ablations_of(interventions, prompt, encoded_ids([0] * (1 + new_tokens)), 0, name)
    return ablations_of(interventions, encoded_ids([0] * (len(prompt.tokens) + new_tokens)), None, 0, name)


def unwritten(interventions: Sequence[Intervention], length: int) -> list[Intervention]:
    """The interventions on tokens that were never written. length: of the text that was, of a pair the target."""
    return [each for each in interventions if _last_token(target_of(each)) >= length]


def unwritten_notes(interventions: Sequence[Intervention], length: int) -> tuple[str, ...]:
    """What a status says of them."""
    return tuple(f"the text ended before {target_of(each)} was reached" for each in unwritten(interventions, length))


def _last_token(target: Any) -> int:
    """The largest number of a generated text's token that an edge names by number, -1 where there is none."""
    if not isinstance(target, Edge):
        return -1
    of_text = ([] if target.part == "encoder" else [target.query]) + (
        [] if target.part in ("encoder", "cross") else [target.key]
    )
    return max((place for place in of_text if isinstance(place, int)), default=-1)


@contextmanager
def heads_in_range(name: str) -> Iterator[None]:
    """Raise RegardError where an ablation inside the block names a head that the model does not have."""
    try:
        yield
    except OutOfRangeError as error:
        raise RegardError(
            f"interventions: head {error.given} is out of range, {name} has heads 0 to {error.size - 1}"
        ) from error


class StepAblations:
    """The ablations of one generation with a model of transformers, applied to each attention call of every pass.

    met: for every call of the pass at hand, in order, the ablations of the whole matrix that hold for it.
    """

    def __init__(self, ablations: Sequence[Ablation], model: nn.Module, watch: Capture, *, pairs: bool, name: str):
        self._ablations, self._watch, self._name = tuple(ablations), watch, name
        self._numbers = Numbering(model, watch, pairs=pairs)
        self._first = self._opened = OpenAblations(self._ablations, self._numbers)
        self.met: list[tuple[Ablation, ...]] = []
        self._past = 0

    @contextmanager
    def opened(self, past: int) -> Iterator[None]:
        """Apply them to the pass inside the block. past: how many tokens went through the model before it."""
        self.met, self._past = [], past
        if past:
            self._opened = OpenAblations(self._ablations, self._numbers)  # which counts a pass's calls from 0
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def at_call(self, module: nn.Module, count: int, size: int) -> Iterator[None]:
        """Apply them to one call of a module with count queries and size keys."""
        path, past = self._watch.paths.get(id(module), ""), self._past
        met = self._opened.meet(path, None)
        self.met.append(tuple(met))
        across = id(module) in self._watch.crossing or path in self._watch.across
        place = Rows(past, count, 0, 0, size) if across else Rows.of(size, past, count)
        local = [replace(part, layers=None) for each in met if (part := within_pass(each, place)) is not None]
        with heads_in_range(self._name), ablating(local):
            yield

    def check(self, stacks: Mapping[str, LayerStack]) -> None:
        """Raise RegardError where an ablation met no call of the first pass, or another than it means."""
        Applied(self._first, self._numbers, self._name).check(stacks, Calls(None, ()), ())


_current: ContextVar[StepAblations | None] = ContextVar("regard_step_ablations", default=None)


def ablated_call(module: nn.Module, count: int, size: int) -> ContextManager[None]:
    """Apply the open `StepAblations`, if there are any, to the attention call inside the block."""
    current = _current.get()
    return nullcontext() if current is None else current.at_call(module, count, size)
