"""State in a few sentences why a head looks from one word at another: which parts of both make the score.

What moves attention is how far a score lies from those of the other keys, so the sentences are about that difference.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from regard.explain.wording import exactly_split, listed, number, quoted, signed

if TYPE_CHECKING:
    from regard.questions.score.sources import Pair, ScoreSources

NAMED = 3  # pairs and parts that a sentence names at most
LEAST = 0.05  # of the largest: parts below it are not worth a name
STANDS_OUT = 0.1  # of the sum of absolute values: from where on a pair is more than one among many


def of_score(found: "ScoreSources") -> list[str]:
    """Compose the sentences: what the score is, which pairs make it, which parts of each side, what is not split."""
    beside = found.beside_the_others()
    about = (
        _score(found),
        _score_pairs_sentence(beside),
        _score_side_sentence(beside, "key"),
        _score_side_sentence(beside, "query"),
        _score_left_unsplit(found),
    )
    return [sentence for sentence in about if sentence]


def exactness_of_score(found: "ScoreSources") -> list[str]:
    """Say how exact the split is, what is held fixed in it, and what a part does not say."""
    return [exactly_split("pairs", "score", found.error)]


def _score(found: "ScoreSources") -> str:
    where = f"{'cross-attention of ' * (found.part == 'cross')}layer {found.layer}, head {found.head}"
    gives = f"In {where} {quoted(found.query)} gives {quoted(found.key)} {number(found.weight)} of its attention"
    if found.seen == 1:
        return f"{gives}: there is no other token that it may look at, whatever the score."
    apart = found.score - found.mean
    side = "above" if apart >= 0 else "below"
    return (
        f"{gives}: the score is {number(found.score)}, {number(abs(apart))} {side} the mean "
        f"({number(found.mean)}) of the {found.seen} tokens that it may look at."
    )


def _score_pairs_sentence(beside: "ScoreSources") -> str:
    """The pairs that carry the difference, or that none does."""
    if beside.seen == 1:
        return ""
    *_, scores = beside.table()
    every, most = float(scores.abs().sum()), beside.top(1)[0]
    side = "above" if beside.score >= 0 else "below"
    if every == 0:
        return "No pair of parts takes the score above or below the mean."
    if abs(most.score) < STANDS_OUT * every:
        return (
            f"No pair of parts says why: of {scores.numel():,} the largest, {_score_pair_name(most, beside)} "
            f"({signed(most.score)}), is {abs(most.score) / every:.0%} of the sum of their absolute values."
        )
    pairs = [(_score_pair_name(pair, beside), pair.score) for pair in beside.top(scores.numel())]
    what = f"Of all {scores.numel():,} pairs of parts, what takes the score {side} the mean most"
    return f"{what} is {_most(pairs, beside)}."


def _score_side_sentence(beside: "ScoreSources", side: Literal["query", "key"]) -> str:
    """Which parts of one side matter most, with all of the other."""
    parts = beside.side(side)
    if beside.seen == 1 or len(parts) < 2 or parts[0][1] == 0:
        return ""
    word, than = (beside.query, "") if side == "query" else (beside.key, " beside what the other tokens hold")
    return f"What {quoted(word)} holds{than} makes {signed(beside.score)}, most by {_most(parts, beside)}."


def _most(parts: Sequence[tuple[str, float]], beside: "ScoreSources") -> str:
    """The parts that bring most of the difference, and the one that stands most against it.

    parts: the largest absolute scores first. Where all stand against it, as rounding may have it, they are named.
    """
    sign = 1 if beside.score >= 0 else -1
    least = LEAST * abs(parts[0][1])
    along = [each for each in parts if each[1] * sign > 0][:NAMED]
    along = [each for n, each in enumerate(along) if n == 0 or abs(each[1]) >= least]
    against = [each for each in parts if each[1] * sign < 0 and abs(each[1]) >= least][:1]
    named = listed([f"{name} ({signed(score)})" for name, score in along]) or "none"
    return named + (f"; {against[0][0]} ({signed(against[0][1])}) stands most against it" if against else "")


def _score_left_unsplit(found: "ScoreSources") -> str:
    """What is no part of the split."""
    added = []
    if found.softcapped is not None:
        added.append(f"a softcap makes {number(found.softcapped)} of the score")
    if found.bias != 0:
        added.append(f"{signed(found.bias)} is added to it")
    return f"Before the softmax {listed(added)}, which is no part of the split." if added else ""


def _score_pair_name(pair: "Pair", found: "ScoreSources") -> str:
    return f"{pair.query} of {quoted(found.query)} × {pair.key} of {quoted(found.key)}"
