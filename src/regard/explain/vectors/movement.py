"""Put a word's path, or where it ends beside reference words, onto a plane that keeps which of two points is nearer.

Every state x is taken at length 1, u = x / |x|, so that |u - v|² = 2 - 2 cos(u, v): the nearer of two has the larger
cosine. The plane starts as the two directions of largest variance (PCA; Pearson 1901) and is turned until every order
of distances that a reader can take from the picture is that in all dimensions. What no such plane was found for is not
drawn.

Beside reference words only ends are drawn: a state on its way and a reference word at its end are of two spaces, and
the cosine of the two may rise while that of the same state of both falls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.vectors.neutral import MASSIVE, Control, Neutral, direction, not_special, state_lengths_over_median
from regard.explain.vectors.planes import (
    COMPARED,
    FLAT,
    Path2D,
    Plane,
    Point,
    along,
    comparisons,
    plane,
    plane_axes_turned,
)
from regard.explain.vectors.similarity import unit
from regard.text.words import Word
from regard.trace.labelled_map import vector
from regard.trace.trace import Trace

PointPair = tuple[int, int]  # two points whose distance is compared


@dataclass(frozen=True)
class LeftOut:
    """What is on no plane for its massive activation: its state's length is times the median in some layer.

    kind: "word" or "reference". of: the label of the occurrence, empty for a reference word.
    """

    kind: str
    name: str
    of: str
    times: float


@dataclass(frozen=True)
class Tried:
    """A set of points for which a plane was looked for.

    states: the numbers of the states of each path. neutral: whether the neutral sentences are among the points.
    compared: how many comparisons of two distances. wrong: how many come out otherwise on the best plane found than in
    all dimensions; None where there are too many to be tried. disagreement: a sentence with their number.
    """

    states: list[int]
    neutral: bool
    compared: int
    wrong: int | None
    disagreement: str | None


@dataclass(frozen=True)
class Movement:
    """Words on one plane, every state at length 1: there the nearer of two has the larger cosine.

    states: the numbers of the states that are on it: [0] enters layer 0, [n + 1] leaves layer n, the last is the
    contextual embedding, as cosines to reference words are of (behind the final norm where there is one). Beside
    reference words the last alone; else all, or the first and the last; none where no plane was found. words: one path
    for each word asked for, a point for each of these states. references: where each reference word ends, a text of its
    own. None for what is left_out, and where there is no plane.

    neutral: where the word ends in neutral sentences, the mean of them. leaves: of each word, whether its end leaves
    the range that these have of cosines to a reference word: then what its text did to it is more than any would do;
    false of a word of other tokens than in those sentences.

    fitted: the reference words that the plane is fitted to, with the words' ends; none: it is fitted to the words' own
    states. share: the part of the variance of these that each axis keeps. width: dimensions of a state. tried: the
    planes looked for, one after another until one had every comparison right: the last one is drawn where it has.
    """

    share: tuple[float, float]
    states: list[int]
    words: list[Path2D | None]
    references: list[Point | None]
    neutral: Point | None
    leaves: list[bool]
    fitted: list[str]
    width: int
    tried: list[Tried]
    left_out: list[LeftOut]


@dataclass(frozen=True)
class Points:
    """Points for which a plane is looked for, and the comparisons that a reader would make among them.

    full: how far every two are apart in all dimensions.
    """

    states: list[int]
    neutral: bool
    at: Float[Tensor, "p M"]
    full: Float[Tensor, "p p"]
    groups: list[list[PointPair]]


def movement(
    words: Sequence[tuple[Trace, Word]],
    traces: Sequence[Trace],
    references: Sequence[Trace],
    labels: Sequence[str] = (),
    control: Sequence[tuple[Trace, Word]] = (),
    ranges: Sequence[Neutral] = (),
    held: Control | None = None,
) -> Movement:
    """Compute where words go on a plane that keeps the order of distances.

    traces, references: of all texts, and of the reference words. labels: what the words are called, by default their
    numbers from 1. control: the word in neutral sentences. ranges: what its cosines to the reference words are there.
    held: which words they cannot be taken for.
    """
    labels = list(labels) or [str(n + 1) for n in range(len(words))]
    times = state_lengths_over_median(traces, references)
    of_words = [float(times[id(trace)][list(word.tokens)].max()) for trace, word in words]
    of_marks = [float(times[id(r)][not_special(r)].max()) for r in references]
    left = [LeftOut("word", w.text, n, t) for (_, w), n, t in zip(words, labels, of_words, strict=True) if t > MASSIVE]
    left += [LeftOut("reference", r.text, "", t) for r, t in zip(references, of_marks, strict=True) if t > MASSIVE]

    kept = [n for n, most in enumerate(of_words) if most <= MASSIVE]
    # the last state of a path is the contextual embedding, behind the final norm where there is one
    states = [[*words[n][0].hidden_states[:-1], words[n][0].last_hidden_state] for n in kept]
    paths = [
        torch.stack([unit(vector(state, words[n][1])) for state in own]) for n, own in zip(kept, states, strict=True)
    ]
    beside = [n for n, most in enumerate(of_marks) if most <= MASSIVE]
    ends = {
        references[n].text: unit(references[n].last_hidden_state[not_special(references[n])].mean(0)) for n in beside
    }
    of_control = [unit(vector(trace.last_hidden_state, word)) for trace, word in control]
    if not paths:
        wanted: list[Points] = []
    elif ends:
        wanted = _beside_references(paths, ends, of_control)
    else:
        wanted = _plane_points_of_paths(paths)

    tried: list[Tried] = []
    flat, drawn = Plane(torch.zeros(1), torch.zeros(1, 2), (0.0, 0.0)), None
    for points in wanted:
        flat, found = _plane_holding_order(points)
        tried.append(found)
        if found.wrong == 0:
            drawn = points
            break
    placed = iter([] if drawn is None else [(x, y) for x, y in flat.place(drawn.at).tolist()])
    at = {n: [next(placed) for _ in drawn.states] for n in kept} if drawn else {}
    marks = {n: next(placed) for n in beside} if drawn and ends else {}
    # of each path, whether its end goes towards or away from a reference word, as the sentences have it
    known = [each for each in ranges if each.word in ends]
    far = [any(direction(float(path[-1] @ ends[n.word]), n) is not None for n in known) for path in paths]
    otherwise = [] if held is None else held.otherwise
    return Movement(
        share=flat.share, states=drawn.states if drawn else [], words=[at.get(n) for n in range(len(words))],
        references=[marks.get(n) for n in range(len(references))], neutral=next(placed, None),
        leaves=[n in kept and far[kept.index(n)] and labels[n] not in otherwise for n in range(len(words))],
        fitted=list(ends) if drawn else [], width=traces[0].last_hidden_state.shape[1], tried=tried, left_out=left,
    )  # fmt: skip


def _beside_references(
    paths: Sequence[Float[Tensor, "N M"]],
    references: Mapping[str, Float[Tensor, " M"]],
    control: Sequence[Float[Tensor, " M"]],
) -> list[Points]:
    """The ends of words and reference words, with the mean of the neutral sentences where there are some, or without.

    Compared are the distances between an end and a reference word: seen from either. That of the neutral mean is of
    the mean of the cosines.
    """
    count = len(paths)
    at = [*(path[-1] for path in paths), *references.values()]
    marks = range(count, len(at))
    last, found = len(paths[0]) - 1, []

    for neutral in [True, False] if control else [False]:
        rows = torch.stack([*at, torch.stack(list(control)).mean(0)] if neutral else at)
        own_ends = [*range(count), *([len(at)] if neutral else [])]
        groups = [[(n, mark) for mark in marks] for n in own_ends]
        groups += [[(n, mark) for n in own_ends] for mark in marks]
        full = (2 - 2 * rows @ rows.T).clamp_min(0).sqrt()
        found.append(Points([last], neutral, rows, full, groups))
    return found


def _plane_points_of_paths(paths: Sequence[Float[Tensor, "N M"]]) -> list[Points]:
    """The words' states in all layers; or their first and last.

    Compared are, seen from each state, all of its own path and those of the others at its layer; from a start all of
    all paths; and how far two paths are apart, layer by layer.
    """
    count, every = len(paths), len(paths[0])
    found = []
    for states in (list(range(every)), [0, every - 1]):
        rows, size = torch.cat([path[states] for path in paths]), len(states)
        places = [(p, s) for p in range(count) for s in range(size)]
        groups = [
            [(p * size + s, q * size + t) for q, t in places if (q, t) != (p, s) and (q == p or t == s or s == 0)]
            for p, s in places
        ]
        groups += [[(p * size + s, q * size + s) for s in range(size)] for p, q in combinations(range(count), 2)]

        found.append(Points(states, False, rows, (2 - 2 * rows @ rows.T).clamp_min(0).sqrt(), groups))
        if count == 1 or every == 2:
            break  # of one path's start and end there is nothing to compare
    return found


def _plane_holding_order(points: Points) -> tuple[Plane, Tried]:
    """The plane of some points, turned until near is near, and checked. What has nothing to compare has no plane."""
    flat = (
        plane(points.at)
        if len(points.at) > 1
        else Plane(points.at[0], points.at.new_zeros(len(points.at[0]), 2), (0.0, 0.0))
    )
    count = sum(len(group) * (len(group) - 1) // 2 for group in points.groups)
    if count > COMPARED:
        too_many = f"{count:,} distance comparisons are too many for a plane (limit: {COMPARED:,})"
        return flat, Tried(points.states, points.neutral, count, None, too_many)
    wanted = comparisons(points.at, points.groups, points.full)
    if not len(wanted):
        return flat, Tried(points.states, points.neutral, 0, None, "There are no two distances to compare")
    if flat.share[1] > FLAT:
        flat = along(points.at, plane_axes_turned(points.at, flat.axes, wanted))
    wrong = (~wanted.kept(flat.place(points.at))).nonzero()[:, 0]
    reversed_ = f"{len(wrong):,} of {len(wanted):,} distance comparisons are reversed on the best plane found"
    return flat, Tried(points.states, points.neutral, len(wanted), len(wrong), reversed_ if len(wrong) else None)
