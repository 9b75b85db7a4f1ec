"""Apply ablations of a whole text to the passes of its generation, each of which has some rows of every matrix.

An edge is a query and a key of the whole text. The first pass has the rows of the prompt, each later one the row of one
new token; the keys of a pass may begin later than the text, where a sliding cache has dropped older ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from regard.attention.ablation import Ablation, HeadAblation, OpenAblations, ablating
from regard.attention.patches import CallPatch, PatchError
from regard.attention.recording import Calls
from regard.capture.interventions.ablation import AppliedAblations, CallChange, call_name, of_model
from regard.capture.interventions.call_ids import CallNumbering
from regard.capture.interventions.names import Ablate, Edge, Places, tokens_at
from regard.capture.interventions.patch import Patch
from regard.capture.interventions.resolve import Changes, Intervention, checked, needs_stacks
from regard.capture.interventions.steer import Steer
from regard.capture.session import Session
from regard.capture.state import Capture, LayerStack
from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError
from regard.text.tokens import Encoded, encoded_ids
from regard.text.words import Place, Word, find_word, only_word


@dataclass(frozen=True)
class PassRange:
    """Rows [past, past + count) of the whole matrix, and keys [first, first + seen) of it, that one pass has.

    A KV cache hands a pass all keys so far, the newest ones alone (a sliding one), or a buffer with room for more.

    past: how many tokens came before the pass. count: how many it adds. new: the first new one among its keys. first:
    the position of its first key. seen: how many of its keys exist (a static cache hands out empty ones as well).
    """

    past: int
    count: int
    new: int
    first: int
    seen: int

    @staticmethod
    def of(size: int, past: int, count: int) -> "PassRange":
        """Of size keys, after past tokens and with count new ones."""
        if size > past + count:  # a buffer that is not full yet
            return PassRange(past, count, past, 0, past + count)
        return PassRange(past, count, size - count, past + count - size, size)  # the newest keys, older ones dropped


def within_pass(ablation: Ablation, place: PassRange) -> Ablation | None:
    """An ablation of a whole matrix, numbered as in a pass's rows and keys of it; None where these have none of it."""
    if isinstance(ablation, HeadAblation):
        return ablation
    if isinstance(ablation, CallPatch):
        of_keys = ablation.what == "values"
        return ablation.at(*(place.first, place.seen) if of_keys else (place.past, place.count))
    queries = [q - place.past for q in ablation.queries or () if place.past <= q < place.past + place.count]
    keys = [k - place.first for k in ablation.keys or () if place.first <= k < place.first + place.seen]
    return replace(ablation, queries=queries, keys=keys) if queries and keys else None


def with_tokens(
    interventions: Sequence[Intervention], source: Encoded, paired: bool, name: str
) -> tuple[Intervention, ...]:
    """Make interventions whose words are looked up in the prompt: what is written later may contain them again.

    A patch of all positions is one of those of the prompt. source: the prompt. name: the model's. paired: of an
    encoder-decoder, whose target has no words before it is written.
    """

    def of_target(place: Any) -> RegardError:
        word = "all positions are" if place is None else f"{place!r} is a word"
        return RegardError(
            f"interventions: {word} of the target, which {name} has not written yet: give the numbers of its tokens"
        )

    def resolved(place: Place, in_target: bool) -> Place:
        if not isinstance(place, (str, tuple)):
            return place
        if in_target:
            raise of_target(place)
        if isinstance(place, tuple):
            return only_word(source.text, source.tokens, place)
        words = find_word(source.text, source.tokens, place)
        tokens = sorted({token for word in words for token in word.tokens})
        return Word(place, words[0].start, words[-1].end, tuple(tokens))

    def numbered(change: Patch | Steer) -> Patch | Steer:
        if paired and _in_generated_target(change):
            for place in change.at or (None,):
                if not is_whole(place) and not (place is None and isinstance(change, Steer)):
                    raise of_target(place)
            return change
        if change.at is None and isinstance(change, Steer):
            return change  # of all tokens, those that are written too
        at = _prompt_token_numbers(source, change.at)
        if isinstance(change, Steer):
            return replace(change, at=at)
        if change.what == "weights":
            raise RegardError(
                "patch: rows of weights cannot be patched while text is written: patch head_outputs or values"
            )
        if change.sources is None:
            return replace(change, at=at)
        places = change.at if change.source_at is None else change.source_at
        if places is not None:
            return replace(change, at=at, source_at=places)
        lengths = {len(trace.sides[-1 if change.part == "decoder" else 0].tokens) for trace in change.sources}
        if lengths != {len(at)}:
            raise RegardError(
                f"patch: the prompt has {len(at)} tokens and the source {' and '.join(map(str, sorted(lengths)))}: "
                "they cannot be aligned, give at= and source_at= of as many tokens"
            )
        return replace(change, at=at, source_at=at)

    numbered_changes: list[Intervention] = []
    for change in map(checked, interventions):
        if not isinstance(change, Ablate):
            numbered_changes.append(numbered(change))
            continue
        edge = change.target
        if isinstance(edge, Edge):
            query = resolved(edge.query, paired and edge.part != "encoder")
            key = resolved(edge.key, paired and edge.part not in ("encoder", "cross"))
            change = Ablate(replace(edge, query=query, key=key))
        numbered_changes.append(change)
    return tuple(numbered_changes)


def _prompt_token_numbers(prompt: Encoded, places: Places | None) -> tuple[int, ...]:
    """Places as numbers of tokens, those of words in the prompt; None is all of the prompt."""
    if places is None:
        return tuple(range(len(prompt.tokens)))
    numbers: list[int] = []
    for place in places:
        here = isinstance(place, (str, tuple, Word))
        numbers += tokens_at("at", prompt.text, prompt.tokens, (place,)) if here else [int(place)]  # type: ignore[arg-type]
    return tuple(numbers)


def whole_text_changes(
    interventions: Sequence[Intervention], prompt: Encoded, max_new_tokens: int, session: Session
) -> Changes:
    """Return what is done to the whole text's matrices and states.

    interventions: as `with_tokens` gives them. prompt: the text that is gone on with, or that an encoder reads.
    """
    if needs_stacks(interventions):
        session.structure.stacks(prompt, first_target(session))
    if session.pairs:
        return session.structure.changes([prompt], [encoded_ids([0] * (1 + max_new_tokens))], [interventions])
    return session.structure.changes([encoded_ids([0] * (len(prompt.tokens) + max_new_tokens))], None, [interventions])


def first_target(session: Session) -> Encoded | None:
    """Return what the decoder of an encoder-decoder reads at first; None for any other model."""
    return encoded_ids([getattr(session.model.config, "decoder_start_token_id", None) or 0]) if session.pairs else None


def unwritten(interventions: Sequence[Intervention], length: int) -> list[Intervention]:
    """Return interventions on tokens that were never written. length: of the written text, of a pair the target."""
    return [intervention for intervention in interventions if _last_token(intervention) >= length]


def unwritten_notes(interventions: Sequence[Intervention], length: int) -> tuple[str, ...]:
    """Write a note for each intervention on tokens that were never written."""
    return tuple(f"The text ended before this took effect: {change}." for change in unwritten(interventions, length))


def _in_generated_target(change: Patch | Steer) -> bool:
    """Whether the places of a patch or push are tokens of an encoder-decoder's target."""
    of_keys = isinstance(change, Patch) and change.what == "values"
    return change.part == "decoder" or (change.part == "cross" and not of_keys)


def _last_token(intervention: Intervention) -> int:
    """The largest number of a generated text's token that an intervention names by number, -1 where there is none."""
    if not isinstance(intervention, Ablate):
        if intervention.at is None or (intervention.part is not None and not _in_generated_target(intervention)):
            return -1
        return max(place for place in intervention.at if isinstance(place, int))
    target = intervention.target
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
    except (OutOfRangeError, PatchError) as error:
        raise of_model(error, name) from error


class StepAblations:
    """The ablations of one generation with a model of transformers, applied to each attention call of every pass.

    held: for every call of the pass at hand, in order, the ablations of the whole matrix that apply to it.
    """

    def __init__(
        self, ablations: Sequence[CallChange], model: nn.Module, capture: Capture, *, pairs: bool, name: str
    ) -> None:
        self._ablations, self._capture, self._name = tuple(ablations), capture, name
        self._numbering = CallNumbering(model, capture, pairs=pairs)
        self._first = self._open = self._new_pass()
        self.held: list[tuple[Ablation, ...]] = []
        self._past = 0

    @contextmanager
    def opened(self, past: int) -> Iterator[None]:
        """Apply them to the pass inside the block. past: how many tokens went through the model before it."""
        self.held, self._past = [], past
        if past:
            self._open = self._new_pass()  # which counts a pass's calls from 0
        self._capture.around_call = self.at_call
        try:
            yield
        finally:
            self._capture.around_call = None

    @contextmanager
    def at_call(self, path: str, count: int, size: int) -> Iterator[None]:
        """Apply them to one call of a module, by its path, with count queries and size keys."""
        matching = self._open.match(path, None)
        self.held.append(tuple(matching))
        across = path in self._capture.cross_paths
        place = PassRange(self._past, count, 0, 0, size) if across else PassRange.of(size, self._past, count)
        local = [replace(part, layers=None) for x in matching if (part := within_pass(x, place)) is not None]
        with heads_in_range(self._name), ablating(local):
            yield

    def check(self, stacks: Mapping[str, LayerStack]) -> None:
        """Raise RegardError where an ablation met no call of the first pass, or another than it means."""
        AppliedAblations(self._ablations, self._first, self._numbering, self._name).check(stacks, Calls(None, ()), ())

    def _new_pass(self) -> OpenAblations:
        def name_of(path: str, nth: int) -> str:
            call = self._numbering(path, nth)
            return "" if call is None else call_name(call.part, call.layer, call.nth)

        return OpenAblations([ablation.for_attend() for ablation in self._ablations], name_of)
