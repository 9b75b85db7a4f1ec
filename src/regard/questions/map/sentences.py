"""State in a few sentences what one layer's attention over a long text does: how far, how sharply, to whom."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from regard.explain.wording import as_among, capital, number, quoted

if TYPE_CHECKING:
    from regard.questions.map.answer import HeadFigures, Matrix, Receiver

OFTEN = 1.5  # times the average that a token has to receive to stand out
PART = 0.005  # parts of all attention below it round to 0%


def of_matrix(matrix: "Matrix") -> list[str]:
    """Compose the sentences, each where its numbers bear it."""
    about = (
        _map_distance_sentence,
        _map_sharpness_sentence,
        _map_sinks_sentence,
        _map_receiver_sentence,
        _map_pair_sentence,
    )
    return [sentence for sentence in (each(matrix) for each in about) if sentence]


def _mean_of_heads(matrix: "Matrix", of: "Callable[[HeadFigures], float]") -> float:
    return sum(map(of, matrix.heads)) / len(matrix.heads)


def _least_and_most(matrix: "Matrix", of: "Callable[[HeadFigures], float]") -> "tuple[HeadFigures, HeadFigures]":
    """The heads with the smallest and the largest figure."""
    return min(matrix.heads, key=of), max(matrix.heads, key=of)


def _map_distance_sentence(matrix: "Matrix") -> str:
    """How far tokens look."""
    mean = _mean_of_heads(matrix, lambda head: head.distance)
    near, far = _least_and_most(matrix, lambda head: head.distance)
    where = f"In layer {matrix.layer} a token looks {mean:.1f} tokens away on average"
    if matrix.head is not None:
        return f"In head {matrix.head} of layer {matrix.layer} a token looks {mean:.1f} tokens away on average."
    if f"{near.distance:.1f}" == f"{far.distance:.1f}":
        return f"{where}."
    ends = f"least far in head {near.head} ({near.distance:.1f}), furthest in head {far.head} ({far.distance:.1f})"
    return f"{where}: {ends}."


def _map_sharpness_sentence(matrix: "Matrix") -> str:
    """How sharp the heads are."""
    sharp, broad = _least_and_most(matrix, lambda head: head.entropy)
    if matrix.head is not None:
        return f"It spreads its weight like equal weights over {as_among(sharp.entropy)} tokens (e to the entropy)."
    if as_among(sharp.entropy) == as_among(broad.entropy):
        return f"All its heads spread their weight alike, as equal weights over {as_among(sharp.entropy)} tokens would."
    return (
        f"Head {sharp.head} is the sharpest, as if it looked at {as_among(sharp.entropy)} tokens alike (e to the "
        f"entropy); head {broad.head} the broadest, at {as_among(broad.entropy)}."
    )


def _map_sinks_sentence(matrix: "Matrix") -> str:
    """What special tokens and sinks take of all attention."""
    parts = []
    for name, of in (
        ("special tokens", lambda head: head.special),
        ("attention sinks among the tokens", lambda head: head.sink_tokens),
        ("a sink that the heads have learned, no token,", lambda head: head.sink),
    ):
        share, (least, most) = _mean_of_heads(matrix, of), _least_and_most(matrix, of)
        if share < PART:
            continue
        several = f"{of(least):.0%}" != f"{of(most):.0%}"
        between = f" ({of(least):.0%} in head {least.head}, {of(most):.0%} in head {most.head})" if several else ""
        parts.append(f"{name} take{'s' * name.startswith('a sink')} {share:.0%}{between}")
    return capital(" and ".join(parts)) + " of all attention." if parts else ""


def _map_receiver_sentence(matrix: "Matrix") -> str:
    """Which token with a meaning receives most."""
    rest = [each for each in matrix.receivers if not each.special and not each.sink]
    if not rest:
        return ""
    first = rest[0]
    aside = "special tokens and sinks aside, " * (len(rest) < len(matrix.receivers))
    if first.received < OFTEN:
        return capital(f"{aside}no token stands out: the largest receiver, {_named(first)}, gets {_times(first)}.")
    word = next((each for each in rest if any(map(str.isalpha, each.place.text))), None)
    then = "" if word is None or word is first else f"; of words {_named(word)}, {word.received:.1f} times"
    return capital(f"{aside}{_named(first)} receives most, {_times(first)}{then}.")


def _named(receiver: "Receiver") -> str:
    return f"{quoted(receiver.place.text)} (token {receiver.place.token})"


def _times(receiver: "Receiver") -> str:
    return f"{receiver.received:.1f} times what tokens get on average"


def _map_pair_sentence(matrix: "Matrix") -> str:
    """The strongest link across a distance."""
    if not matrix.pairs:
        within = " within its window" if matrix.band is not None else ""
        return f"Special tokens and sinks aside, no token looks at one more than {matrix.far} tokens away{within}."
    first = matrix.pairs[0]
    way = "ahead" if first.key.token > first.query.token else "back"
    query, key = (f"{quoted(place.text)} ({place.token})" for place in (first.query, first.key))
    within = "" if matrix.band is None else " within a window"
    return (
        f"The strongest link over more than {matrix.far} tokens{within}, special tokens and sinks aside: {query} looks "
        f"{first.distance} tokens {way} at {key}, {number(first.weight)} in head {first.head}."
    )
