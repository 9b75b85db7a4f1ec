"""Interventions on a text that is not written yet: words are those of the prompt, numbers may be of tokens to come."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

from regard.capture.interventions.activations import Patch, Steer
from regard.capture.interventions.names import Ablate, Edge, Place, tokens_at
from regard.capture.interventions.resolve import Intervention
from regard.checks import is_whole
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.text.words import Word, find_word, only_word


def with_prompt_tokens(
    interventions: Sequence[Intervention], prompt: Encoded, pairs: bool, name: str
) -> list[Intervention]:
    """Look words up in the prompt: what is written later may contain them again.

    A patch of all positions is one of the prompt's positions. pairs: whether the model, of this name, is an
    encoder-decoder, whose target has no words yet.
    """
    return [
        _edge_of_prompt(change, prompt, pairs, name)
        if isinstance(change, Ablate)
        else _positions_of_prompt(change, prompt, pairs, name)
        for change in interventions
    ]


def written_part(change: Intervention, length: int) -> Intervention | None:
    """Return what an intervention does to the first tokens of a text, None for nothing.

    change: as `with_prompt_tokens` returns it. length: how many tokens are written, of an encoder-decoder's target.
    """
    if isinstance(change, Ablate):
        return change if all(number < length for number in _edge_numbers(change)) else None
    if change.at is None or (change.part is not None and not _in_target(change)):
        return change
    kept = [n for n, number in enumerate(change.at) if int(number) < length]  # type: ignore[arg-type]
    if len(kept) in (0, len(change.at)):
        return change if kept else None
    at = tuple(change.at[n] for n in kept)
    if isinstance(change, Steer) or change.sources is None:
        return replace(change, at=at)
    places = change.at if change.source_at is None else change.source_at
    if len(places) != len(change.at):
        raise RegardError("patch: some tokens of at= are still to be written: give as many tokens in source_at=")
    return replace(change, at=at, source_at=tuple(places[n] for n in kept))


def _edge_of_prompt(change: Ablate, prompt: Encoded, pairs: bool, name: str) -> Ablate:
    edge = change.target
    if not isinstance(edge, Edge):
        return change

    def looked_up(place: Place, in_target: bool) -> Place:
        if not isinstance(place, (str, tuple)):
            return place
        if in_target:
            raise _target_unwritten(place, name)
        if isinstance(place, tuple):
            return only_word(prompt.text, prompt.tokens, place)
        words = find_word(prompt.text, prompt.tokens, place)
        tokens = sorted({token for word in words for token in word.tokens})
        return Word(place, words[0].start, words[-1].end, tuple(tokens))

    query = looked_up(edge.query, pairs and edge.part != "encoder")
    return Ablate(replace(edge, query=query, key=looked_up(edge.key, pairs and edge.part == "decoder")))


def _positions_of_prompt(change: Patch | Steer, prompt: Encoded, pairs: bool, name: str) -> Patch | Steer:
    if pairs and _in_target(change):
        for place in change.at or (None,):
            if not is_whole(place) and not (place is None and isinstance(change, Steer)):
                raise _target_unwritten(place, name)
        return change
    if isinstance(change, Steer) and change.at is None:
        return change  # all tokens, those that are written too
    at: list[int] = []
    for place in range(len(prompt.tokens)) if change.at is None else change.at:
        if isinstance(place, (str, tuple, Word)):
            at += tokens_at("at", prompt.text, prompt.tokens, (place,))
        else:
            at.append(int(place))
    if isinstance(change, Steer) or change.sources is None:
        return replace(change, at=tuple(at))
    if change.what == "weights":
        raise RegardError(
            "patch: rows of weights cannot be patched while text is written: patch head_outputs or values"
        )
    places = change.at if change.source_at is None else change.source_at
    if places is None:
        lengths = {len(trace.sides[-1 if change.part == "decoder" else 0].tokens) for trace in change.sources}
        if lengths != {len(at)}:
            raise RegardError(
                f"patch: the prompt has {len(at)} tokens and the source {' and '.join(map(str, sorted(lengths)))}: "
                "they cannot be aligned, give at= and source_at= of as many tokens"
            )
        places = tuple(at)
    return replace(change, at=tuple(at), source_at=places)


def _edge_numbers(change: Ablate) -> list[int]:
    """The tokens of the text, of an encoder-decoder's target, that an ablated edge names by number."""
    edge = change.target
    if not isinstance(edge, Edge) or edge.part == "encoder":
        return []
    ends = [edge.query] if edge.part == "cross" else [edge.query, edge.key]
    return [int(end) for end in ends if isinstance(end, SupportsIndex)]


def _in_target(change: Patch | Steer) -> bool:
    """Whether the places of a patch or push are tokens of an encoder-decoder's target."""
    of_keys = isinstance(change, Patch) and change.what == "values"
    return change.part == "decoder" or (change.part == "cross" and not of_keys)


def _target_unwritten(place: Any, name: str) -> RegardError:
    word = "all positions are" if place is None else f"{place!r} is a word"
    return RegardError(
        f"interventions: {word} of the target, which {name} has not written yet: give the numbers of its tokens"
    )
