"""State in a few sentences why a head looks from one word at another: which parts of both make the score.

What moves attention is how far a score lies from those of the other keys, so the sentences are about that difference.
"""

from typing import Literal

from regard.explain.causes.score_sources import Pair, ScoreSources
from regard.explain.findings.wording import listed, number, quoted

NAMED = 3  # pairs and parts that a sentence names at most
LEAST = 0.05  # of the largest: parts below it are not worth a name
STANDS_OUT = 0.1  # of the sum of absolute values: from where on a pair is more than one among many


def score_findings(found: ScoreSources) -> list[str]:
    """Compose the sentences: what the score is, which pairs make it, which parts of each side, what is not split."""
    beside = found.beside_the_others()
    about = (_score(found), _pairs(beside), _side(beside, "key"), _side(beside, "query"), _apart(found))
    return [sentence for sentence in about if sentence]


def signed(value: float) -> str:
    """A number with its sign: +0.31, −0.004."""
    return ("−" if value < 0 else "+") + number(abs(value))


def _score(found: ScoreSources) -> str:
    where = f"{'cross-attention of ' * (found.part == 'cross')}layer {found.layer}, head {found.head}"
    gives = f"In {where} {quoted(found.query)} gives {quoted(found.key)} {number(found.weight)} of its attention"
    if found.seen == 1:
        return f"{gives}: there is no other token that it may look at, whatever the score."
    apart = found.score - found.mean
    side = "above" if apart >= 0 else "below"
    return (
        f"{gives}: the score is {_plain(found.score)}, {number(abs(apart))} {side} the mean "
        f"({_plain(found.mean)}) of the {found.seen} tokens that it may look at."
    )


def _pairs(beside: ScoreSources) -> str:
    """The pairs that carry the difference, or that none does."""
    if beside.seen == 1:
        return ""
    *_, scores = beside.table()
    every, most = float(scores.abs().sum()), beside.top(1)[0]
    for_it = beside.score >= 0
    looks = "looks at" if for_it else "does not favour"
    start = f"{quoted(beside.query)} {looks} {quoted(beside.key)}"
    if every == 0:
        return f"{start} no more than at any other token: all of them have the same score."
    if abs(most.score) < STANDS_OUT * every:
        return (
            f"No pair of parts says why: of {scores.numel():,} the largest, {_named(most, beside)} "
            f"({signed(most.score)}), is {abs(most.score) / every:.0%} of the sum of their absolute values."
        )
    toward = [pair for pair in beside.top(10 * NAMED) if (pair.score >= 0) == for_it][:NAMED]
    toward = [pair for pair in toward if abs(pair.score) >= LEAST * abs(most.score)]
    if not toward:
        return ""
    against = [pair for pair in beside.top(NAMED) if (pair.score >= 0) != for_it][:1]
    but = f"; against it stands {_named(against[0], beside)} ({signed(against[0].score)})" if against else ""
    because = listed([f"{_named(pair, beside)} ({signed(pair.score)})" for pair in toward])
    return f"{start} because of {because}{but}."


def _side(beside: ScoreSources, side: Literal["query", "key"]) -> str:
    """Which parts of one side matter most, with all of the other."""
    parts = beside.side(side)
    if beside.seen == 1 or len(parts) < 2 or parts[0][1] == 0:
        return ""
    word, than = (beside.query, "") if side == "query" else (beside.key, " beside what the other tokens hold")
    named = [f"{name} ({signed(score)})" for name, score in parts[:NAMED] if abs(score) >= LEAST * abs(parts[0][1])]
    return f"What {quoted(word)} holds{than} makes {signed(beside.score)}, most by {listed(named)}."


def _apart(found: ScoreSources) -> str:
    """What is no part of the split."""
    added = []
    if found.softcapped is not None:
        added.append(f"a softcap makes {_plain(found.softcapped)} of the score")
    if found.bias != 0:
        added.append(f"{signed(found.bias)} is added to it")
    return f"Before the softmax {listed(added)}, which is no part of the split." if added else ""


def _named(pair: Pair, found: ScoreSources) -> str:
    return f"{pair.query} of {quoted(found.query)} × {pair.key} of {quoted(found.key)}"


def _plain(value: float) -> str:
    return ("−" if value < 0 else "") + number(abs(value))
