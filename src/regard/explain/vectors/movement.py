"""Project a word's path through the layers onto a plane that keeps which of two points is nearer.

Every state x is taken at length 1, u = x / |x|, so that |u - v|² = 2 - 2 cos(u, v): the nearer of two has the larger
cosine. The plane starts as the two directions of largest variance (PCA; Pearson 1901) and is turned until the order of
distances on it is that in all dimensions; where no plane has all of them, that is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.vectors.massive_activations import MASSIVE, own, times_median
from regard.explain.vectors.plane_order import comparisons, turned
from regard.explain.vectors.planes import Path2D, Plane, Point, along, plane
from regard.text.words import Word
from regard.trace.trace import Trace
from regard.trace.word_rows import vector

FLAT = 1e-9  # the part of the variance from which a second axis is one, and no error of rounding
Pair = tuple[int, int]  # two points whose distance is compared
# A plane, how many distances were compared on it, how many come out otherwise, and what is said of these.
Held = tuple[Plane, int, int, str | None]


@dataclass(frozen=True)
class LeftOut:
    """What is on no plane for its massive activation: its state's length is times the median in some layer.

    kind: "token", "word" or "reference". of: the label of the text or occurrence, empty for a reference word.
    """

    kind: str
    name: str
    of: str
    times: float


@dataclass(frozen=True)
class Movement:
    """Words and tokens on one plane, every state at length 1: there the nearer of two has the larger cosine.

    A path has one point a state: [0] enters layer 0, [n + 1] leaves layer n, the last is the contextual embedding, as
    cosines to reference words are of (behind the final norm where there is one). words: one path for each word asked
    for. references: the path of each reference word, a text of its own. tokens: where each text's tokens end. None for
    what is left_out.

    fitted: the reference words whose final states, with those of the word, the plane is fitted to; none: it is fitted
    to the word's own states. share: the part of the variance of these that each axis keeps.

    compared: how many comparisons of two distances the plane was held against, in all of a state's width dimensions:
    between the ends of the words and the reference words, where there are some; else of each path's states to its
    start, and of the words' ends to each other. wrong: how many come out otherwise on the plane. disagreement: a
    sentence with their number and the worst of them.
    """

    share: tuple[float, float]
    words: list[Path2D | None]
    references: list[Path2D | None]
    tokens: list[list[Point | None]]
    fitted: list[str]
    width: int
    compared: int
    wrong: int
    disagreement: str | None
    left_out: list[LeftOut]


def movement(
    words: Sequence[tuple[Trace, Word]],
    traces: Sequence[Trace],
    references: Sequence[Trace],
    labels: Sequence[str] = (),
) -> Movement:
    """Compute the paths of words through the layers, on a plane that keeps the order of distances where one can.

    labels: what the words are called, by default their numbers from 1.
    """
    labels = list(labels) or [str(n + 1) for n in range(len(words))]
    times = times_median(traces, references)
    paths = [torch.stack([unit(vector(state, word)) for state in _shown(trace)]) for trace, word in words]
    marks = [torch.stack([unit(state[own(r)].mean(0)) for state in _shown(r)]) for r in references]
    last = [unit(trace.contextual) for trace in traces]
    of_words = [float(times[id(trace)][list(word.tokens)].max()) for trace, word in words]
    of_marks = [float(times[id(r)][own(r)].max()) for r in references]
    left = [LeftOut("word", w.text, n, t) for (_, w), n, t in zip(words, labels, of_words, strict=True) if t > MASSIVE]
    left += [LeftOut("reference", r.text, "", t) for r, t in zip(references, of_marks, strict=True) if t > MASSIVE]
    for number, trace in enumerate(traces, 1):
        mine = {token for each, word in words if each is trace for token in word.tokens}
        long = [(n, float(times[id(trace)][n])) for n in own(trace) if n not in mine]
        left += [LeftOut("token", trace.tokens[n].text, str(number), most) for n, most in long if most > MASSIVE]

    drawn = [path for path, most in zip(paths, of_words, strict=True) if most <= MASSIVE]
    called = [label for label, most in zip(labels, of_words, strict=True) if most <= MASSIVE]
    ends = {r.text: mark[-1] for r, mark, most in zip(references, marks, of_marks, strict=True) if most <= MASSIVE}
    width = last[0].shape[1]
    held = _by_references(drawn, ends, called) if drawn and ends else _by_paths(drawn, called, width)
    flat, compared, wrong, disagreement = held

    def points(vectors: Float[Tensor, "n M"]) -> Path2D:
        return [(x, y) for x, y in flat.place(vectors).tolist()]

    def where(vectors: Sequence[Float[Tensor, "N M"]], most: Sequence[float]) -> list[Path2D | None]:
        return [points(each) if t <= MASSIVE and drawn else None for each, t in zip(vectors, most, strict=True)]

    return Movement(
        share=flat.share,
        words=where(paths, of_words),
        references=where(marks, of_marks),
        tokens=[
            [place if t <= MASSIVE and drawn else None for place, t in zip(points(each), most.tolist(), strict=True)]
            for each, most in zip(last, (times[id(trace)] for trace in traces), strict=True)
        ],
        fitted=list(ends) if drawn else [],
        width=width,
        compared=compared,
        wrong=wrong,
        disagreement=disagreement,
        left_out=left,
    )


def _shown(trace: Trace) -> list[Float[Tensor, "L M"]]:
    """The states of a path: the last one is the contextual embedding, behind the final norm where there is one."""
    return [*trace.hidden_states[:-1], trace.contextual]


def unit(vectors: Float[Tensor, "*n M"]) -> Float[Tensor, "*n M"]:
    """Vectors at length 1; those of length 0 stay."""
    vectors = vectors.double().cpu()
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-30)


def _by_references(
    paths: Sequence[Float[Tensor, "N M"]], references: Mapping[str, Float[Tensor, " M"]], labels: Sequence[str]
) -> Held:
    """The plane of the ends of words and reference words: which word is nearer to which of these, and which to it."""
    count, names = len(paths), [f"“{name}”" for name in references]
    points = torch.stack([*(path[-1] for path in paths), *references.values()])
    marks = range(count, len(points))
    groups = [[(n, mark) for mark in marks] for n in range(count)]
    groups += [[(n, mark) for n in range(count)] for mark in marks]

    def say(near: Pair, far: Pair) -> str:
        (word, mark), (other, beyond) = near, far
        than = f"than to {names[beyond - count]}" if word == other else f"than {labels[other]} does"
        return f"{labels[word]} ends nearer to {names[mark - count]} {than}"

    return _held([points, torch.cat([points, *paths])], points, groups, say)


def _by_paths(paths: Sequence[Float[Tensor, "N M"]], labels: Sequence[str], width: int) -> Held:
    """The plane of the words' states in all layers: how far each is from its path's start, the ends from each other."""
    if not paths:
        return Plane(torch.zeros(width).double(), torch.zeros(width, 2).double(), (0.0, 0.0)), 0, 0, None
    points, states = torch.cat(list(paths)), len(paths[0])
    starts = range(0, len(points), states)
    ends = [start + states - 1 for start in starts]
    groups = [[(start, start + n) for n in range(1, states)] for start in starts]
    groups += [[(one, other) for other in ends if other != one] for one in ends if len(ends) > 2]

    def say(near: Pair, far: Pair) -> str:
        (one, first), (_, second) = near, far
        label = labels[one // states]
        if one % states == 0:
            return f"{label} is nearer to its start after layer {first % states - 1} than after {second % states - 1}"
        return f"{label} ends nearer to {labels[first // states]} than to {labels[second // states]}"

    return _held([points], points, groups, say)


def _held(
    fits: Sequence[Float[Tensor, "_ M"]],
    points: Float[Tensor, "p M"],
    groups: Sequence[Sequence[Pair]],
    say: Callable[[Pair, Pair], str],
) -> Held:
    """The plane of the first of some sets of vectors that has two directions, turned until near is near, and checked.

    groups: pairs of points whose distances are compared with each other. say: that one pair is nearer than another.
    """
    wanted = comparisons(points, groups)
    fit = next((vectors for vectors in fits if plane(vectors).share[1] > FLAT), fits[-1])
    flat = plane(fit)
    if flat.share[1] > FLAT:
        flat = along(fit, turned(points, flat.axes, wanted))
    wrong = (~wanted.kept(flat.place(points))).nonzero()[:, 0]
    if not len(wrong):
        return flat, len(wanted), 0, None
    full = wanted.distances(points)
    worst = wrong[(full[wanted.far[wrong]] - full[wanted.near[wrong]]).argmax()]
    near, far = int(wanted.near[worst]), int(wanted.far[worst])
    first, second = ((int(wanted.pairs[n, 0]), int(wanted.pairs[n, 1])) for n in (near, far))
    cosines = f"cosine {1 - float(full[near]) ** 2 / 2:.3f} against {1 - float(full[far]) ** 2 / 2:.3f}"
    count = (
        f"{len(wrong)} of {len(wanted)} comparisons of near and far come out otherwise here: in all {points.shape[1]} "
    )
    return flat, len(wanted), len(wrong), count + f"dimensions {say(first, second)} ({cosines})"
