"""State in sentences where texts move a word, and what the plane of its way through the layers shows.

Each sentence about a text is of all reference words; "towards" and "away from" are said of cosines that leave the
range of neutral sentences, at the two decimals that are shown, and of no others. The sentences on the plane stand above
the picture and above the page's; each is true of every point that is drawn.
"""

from collections.abc import Mapping, Sequence

from regard.explain.texts.occurrences import Reference
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import LeftOut, Movement, Tried
from regard.explain.vectors.neutral import Neutral, direction
from regard.explain.wording import capital, listed, number, quoted
from regard.text.quoting import short

TOLD = 3  # occurrences that are told of, and reference words that a sentence names on either side of their ranges


def missing(word: str, why: str) -> str:
    """Say that a word's way is not shown."""
    return f"The path of {quoted(short(word))} through the layers is not shown: {why}."


def told(summary: Summary, reference: Reference, neutral: Neutral) -> str | None:
    """Tell "towards" or "away from" of a cosine; None where it stays in its range, or nothing follows from it."""
    gone, massive = _massive(summary)
    if reference.word in gone or reference.occurrence in massive:
        return None
    if summary.control is not None and reference.occurrence in summary.control.otherwise:
        return None
    return direction(reference.last_hidden_state, neutral)


def movement_findings(summary: Summary) -> list[str]:
    """Compose the sentences about a followed word beside reference words; none where there are none."""
    gone, massive = _massive(summary)
    references = [each for each in summary.references if each.word not in gone]
    sentences = []
    if references:
        sentences += _against(summary, references, massive)
        sentences += _between(summary, [each for each in references if each.occurrence not in massive])
    if gone and summary.references:
        are, it = ("is a massive activation", "it") if len(gone) == 1 else ("are massive activations", "them")
        names = listed([quoted(each) for each in gone])
        sentences.append(f"{names} {are}, each as a text of its own: nothing follows from cosines to {it}.")
    return sentences


def _against(summary: Summary, references: Sequence[Reference], massive: set[str]) -> list[str]:
    """What each occurrence's cosines are against those in neutral sentences, or why that is not told."""
    word, control = quoted(summary.word or ""), summary.control
    untold = f"Whether {{}} moves {word} is not told: {{}}."
    if control is None:
        return [untold.format("a text", "there are no neutral sentences to hold it against")]
    if control.refused is not None:
        return [untold.format("a text", control.refused)]
    neutral = {each.word: each for each in summary.neutral}
    sentences = []
    for each in summary.occurrences[:TOLD]:
        where = _where(summary, each.label)
        if each.label in massive:
            sentences.append(untold.format(where, f"there {word} is a massive activation"))
        elif each.label in control.otherwise:
            sentences.append(untold.format(where, f"there {word} is of other tokens than in the neutral sentences"))
        else:
            own = [reference for reference in references if reference.occurrence == each.label]
            sentences.append(_moved(word, where, own, neutral))
    more = len(summary.occurrences) - TOLD
    if more > 0:
        sentences.append(f"{more} more {'occurrence is' if more == 1 else 'occurrences are'} not told of here.")
    return sentences


def _moved(word: str, where: str, own: Sequence[Reference], neutral: Mapping[str, Neutral]) -> str:
    """own: the reference words beside one occurrence. Each that leaves its range is named, or counted."""
    sides: dict[str, list[Reference]] = {"towards": [], "away from": []}
    for each in own:
        side = direction(each.last_hidden_state, neutral[each.word])
        if side is not None:
            sides[side].append(each)
    if not any(sides.values()):
        each, still = own[0], f"In {where} {word} is not told apart from a neutral sentence"
        if len(own) > 1:
            return f"{still} by any of {len(own)} words."
        return f"{still}: {quoted(each.word)} {number(each.last_hidden_state)}, there {_range(neutral[each.word])}."
    says, there = "cosine ", f"in {neutral[own[0].word].sentences} neutral sentences "
    parts = []
    for way, found in sides.items():
        named = []
        found = sorted(found, key=lambda each: _beyond(each.last_hidden_state, neutral[each.word]), reverse=True)
        for each in found[:TOLD]:
            value = number(each.last_hidden_state)
            named.append(f"{quoted(each.word)} ({says}{value}; {there}{_range(neutral[each.word])})")
            says = there = ""
        named += [f"{len(found) - TOLD} more"] if len(found) > TOLD else []
        parts += [f"{way} {listed(named)}"] if named else []
    return f"{capital(where)} moves {word} {' and '.join(parts)}."


def _between(summary: Summary, references: Sequence[Reference]) -> list[str]:
    """To which reference word the occurrences differ most."""
    rows: dict[str, list[Reference]] = {}
    for each in references:
        rows.setdefault(each.word, []).append(each)
    if not rows or len(next(iter(rows.values()))) < 2:
        return []
    ends = []
    for row in rows.values():
        most, least = (pick(row, key=_cosine) for pick in (max, min))
        ends.append((round(_cosine(most), 2) - round(_cosine(least), 2), most, least))
    apart, most, least = max(ends, key=lambda each: (round(each[0], 2), _cosine(each[1]) - _cosine(each[2])))
    several = len(summary.texts) == len(summary.occurrences)
    between = "Between the texts" if several else "Between the occurrences"
    if round(apart, 2) == 0:
        return [f"{between} no cosine to a reference word differs, at two decimals."]
    differs = "differs most" if len(rows) > 1 else "differs"
    high, low = (f"{number(each.last_hidden_state)} in {_where(summary, each.occurrence)}" for each in (most, least))
    return [f"{between} {quoted(most.word)} {differs}: {high}, {low}."]


def _massive(summary: Summary) -> tuple[list[str], set[str]]:
    """The reference words, and the labels of occurrences, whose states are massive activations."""
    out = summary.movement.left_out if summary.movement is not None else []
    return [each.name for each in out if each.kind == "reference"], {each.of for each in out if each.kind == "word"}


def _cosine(reference: Reference) -> float:
    return reference.last_hidden_state


def _where(summary: Summary, label: str) -> str:
    """An occurrence in a sentence, by the label that tables give it."""
    if len(summary.occurrences) == 1:
        return "the text"
    return f"text {label}" if len(summary.texts) == len(summary.occurrences) else f"occurrence {label}"


def _range(neutral: Neutral) -> str:
    return " to ".join(map(number, _ends(neutral)))


def _beyond(cosine: float, neutral: Neutral) -> float:
    """How far a cosine lies outside a range."""
    low, high = _ends(neutral)
    return max(cosine - high, low - cosine)


def _ends(neutral: Neutral) -> tuple[float, float]:
    low, high = neutral.low[-1], neutral.high[-1]
    assert low is not None
    assert high is not None
    return low, high


def movement_curves_title(summary: Summary) -> str:
    """What the curves beside the plane show."""
    word = quoted(summary.word or "")
    if not summary.references:
        return f"How near {word} stays to itself as it enters layer 0: cosine, state by state"
    title = f"How near {word} is to each reference word, both in the same layer (cosine)"
    if not summary.neutral:
        return title
    return f"{title}; dotted: its mean in {summary.neutral[0].sentences} neutral sentences, shaded: their range"


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
