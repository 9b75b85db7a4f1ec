"""Say what the plane of a word's movement shows, what near and far mean on it, and what is not on it.

The same sentences stand above the picture and above the page's; each is true of every point that is drawn.
"""

from regard.explain.findings.wording import listed, quoted
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import LeftOut, Movement, Tried


def curves_title(summary: Summary) -> str:
    """What the curves beside the plane show."""
    word = quoted(summary.word or "")
    if not summary.references:
        return f"How near {word} stays to itself as it enters layer 0: cosine, state by state"
    title = f"How near {word} is to each reference word, each state to the same state: cosine"
    if not summary.neutral:
        return title
    return f"{title}; dotted: the mean of {summary.neutral[0].sentences} neutral sentences, in their range"


def plane_title(summary: Summary) -> str | None:
    """What the plane shows; None where there is none."""
    moved, word = summary.movement, quoted(summary.word or "")
    if moved is None or not moved.states:
        return None
    if moved.fitted:
        neutral = f"; ○ in {summary.neutral[0].sentences} neutral sentences, their mean" if moved.neutral else ""
        return f"Where {word} ends: ★ in a text{neutral}; ◆ a reference word alone"
    if len(moved.states) == 2:
        return f"From where {word} enters layer 0 (in) to its end (★)"
    return f"The path of {word} through the layers: in, it enters layer 0; n, it leaves layer n; ★, its end"


def plane_sentences(summary: Summary) -> list[str]:
    """All that has to be known to read the plane, or why there is none."""
    moved = summary.movement
    if moved is None:
        return []
    said = [nearness(moved), arrows(summary), axes(summary), not_held(moved), not_drawn(moved)]
    return [each for each in said if each is not None]


def nearness(moved: Movement) -> str | None:
    """Say between which points near on the plane is near in all dimensions."""
    if not moved.states:
        return None
    if moved.fitted:
        from_ = "Seen from each ◆, from each ★ and from ○" if moved.neutral else "Seen from each ◆ and from each ★"
    elif sum(path is not None for path in moved.words) == 1:
        from_ = "Seen from each state"
    else:
        from_ = "Along a path, from a start, and between paths at one layer"
    return f"{from_}: nearer here is nearer in all {moved.width} dimensions (has the larger cosine)."


def arrows(summary: Summary) -> str | None:
    """Say what an arrow from the neutral mean tells, and to which ends none leads."""
    moved = summary.movement
    if moved is None or not moved.neutral or not moved.states:
        return None
    drawn = [o.label for o, path in zip(summary.occurrences, moved.words, strict=True) if path]
    leaves = [o.label for o, far in zip(summary.occurrences, moved.leaves, strict=True) if far]
    inside = [label for label in drawn if label not in leaves]
    if not inside:
        return "An arrow leads to each end: its cosine to some reference word is outside the neutral sentences' range."
    which = listed(inside[:12]) + (f" and {len(inside) - 12} more" if len(inside) > 12 else "")
    many = "its cosines are" if len(inside) == 1 else "their cosines are"
    return f"No arrow leads to {which}: {many} within the neutral sentences' range, to each reference word."


def axes(summary: Summary) -> str | None:
    """Say which plane it is, and how much of the variance it keeps."""
    moved = summary.movement
    if moved is None or not moved.states:
        return None
    word = quoted(summary.word or "")
    whose = "all states" if len(moved.states) > 2 else "the first and last states"
    whose = f"where {listed([*map(quoted, moved.fitted), word])} end" if moved.fitted else f"{whose} of {word}"
    return f"The plane is one through {whose}, each of length 1: it keeps {sum(moved.share):.0%} of their variance."


def not_held(moved: Movement) -> str | None:
    """Say what is not drawn because no plane was found that has it right; None where all is."""
    if not moved.tried:
        return None
    if not moved.states:
        return f"Only the curves are drawn, no plane: {_why(moved.tried[-1])}."
    if len(moved.tried) == 1:
        return None
    gone = "The neutral sentences are" if moved.tried[0].neutral else "What is between the first state and the last is"
    return f"{gone} not drawn on the plane: {_why(moved.tried[0])}."


def _why(tried: Tried) -> str:
    return tried.disagreement or "no plane was found"


def not_drawn(moved: Movement) -> str | None:
    """Name what is not on the plane for its length; None where all of it is there."""
    if not moved.left_out:
        return None
    out = ", ".join(left_out(each) for each in moved.left_out)
    return f"Not on the plane, for massive activations (length of a state, × the median): {out}."


def left_out(each: LeftOut) -> str:
    """Name one of those, with its length."""
    where = {"word": f" {each.of}", "reference": " as a text of its own"}[each.kind]
    return f"{quoted(each.name)}{where} ({each.times:.0f} ×)"
