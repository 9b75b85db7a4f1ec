"""What moved a word, as panels: of each occurrence its tokens and its heads, of several what changes each most."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Panel, Strip, Table
from regard.explain.wording import capital, listed, number
from regard.questions.why.measures import CHANGED, CHANGES, CONTRIBUTION, SIDES, WEIGHT
from regard.questions.why.sentences import has_meaning, measured, place
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.why.answer import Cause, Why, _Ranked

WHY = "Why"  # the tab of one occurrence
FEW = 2  # occurrences whose rankings stand on a terminal's first screen, and in the picture


def of_causes(found: "_Ranked") -> list[Panel]:
    """Show of several occurrences the token and the head that change each most; then each text, and every ranking."""
    each = found.each()
    few = len(each) <= FEW
    first = [_first_of_each(each, drawn=not few)] if len(each) > 1 else []
    panels: list[Panel] = [*first]
    for label, why in each:
        panels += [_text(why, label, part, each) for part in sorted({cause.part for cause in why.tokens}, key=str)]
        panels += [_ranking(why, label, what, each, few) for what in ("token", "head")]
    return panels


def _text(why: "Why", label: str, part: str | None, each: "Sequence[tuple[str, Why]]") -> Strip:
    """The text itself, each token by what the word loses without it; one with a meaning is the darkest."""
    tokens = sorted((cause for cause in why.tokens if cause.part == part), key=lambda cause: cause.token or 0)
    one = len(each) == 1
    of = "" if one else f" in {place(label, why)}"
    side = {"cross": "source ", "decoder": "target "}.get(part or "", "")
    grey = [n for n, cause in enumerate(tokens) if (cause.special or cause.sink) and not cause.own]
    full = max((measured(each, why) for each in tokens if has_meaning(each)), default=0.0) or 1.0
    beyond = [f"{name(each)} {number(measured(each, why))}" for each in tokens if measured(each, why) > full]
    said = f"{capital(CHANGES)}: {CHANGED[why.by].of_tokens}"
    said += f"; beyond the scale, which ends at {number(full)}: {listed(beyond)}." if beyond else "."
    return Strip(
        name=f"The {side}text{'' if one else f', {label}'}", tokens=[cause.name for cause in tokens],
        title=f"What each token of the {side}text changes about {quoted(why.word)}{of} when it is taken away",
        values=[measured(cause, why) for cause in tokens], unit=CHANGES, special=grey,
        marked=[n for n, cause in enumerate(tokens) if cause.own], tab=WHY if one else place(label, why), caption=said,
        full=full, note=said, screen=one, picture=one,
    )  # fmt: skip


def _ranking(why: "Why", label: str, what: str, each: "Sequence[tuple[str, Why]]", few: bool) -> Table:
    """Every token, or every head, and what taking it away changes."""
    causes, agreement = (why.tokens, why.tokens_agreement) if what == "token" else (why.heads, why.heads_agreement)
    of, apart = f" in {place(label, why)}" if len(each) > 1 else "", f", {label}" if len(each) > 1 else ""
    weight = WEIGHT.heading if what == "token" else WEIGHT.of_head
    columns = [
        Column(f"without {what}"), Column(CHANGES, 2, bar=True),
        *([Column("effect", 2, detail=True)] if why.by == "divergence" else []),
        Column(CONTRIBUTION.heading, 2, detail=True), Column(weight, 2, detail=what == "head"),
        *([Column("note", detail=True)] if what == "token" else []),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            name(each), measured(each, why), *([each.effect] if why.by == "divergence" else []), each.contribution,
            each.weight, *([_note(each)] if what == "token" else []),
        ]
        for each in causes
    ]  # fmt: skip
    measures = ((CHANGES, CHANGED[why.by]), (CONTRIBUTION.heading, CONTRIBUTION), (weight, WEIGHT))
    says = "; ".join(f"{each}: {m.of_tokens if what == 'token' else m.of_heads}" for each, m in measures)
    ranked = [f"{heading} {number(value)}" if value == value else f"{heading} –"
              for heading, value in zip((weight, CONTRIBUTION.heading), agreement, strict=True)]  # fmt: skip
    return Table(
        name=f"Without a {what}{apart}", title=f"{quoted(why.word)}{of} without each {what}", columns=columns,
        rows=rows, note=f"Rank correlation with what it changes: {', '.join(ranked)}. {says}.", screen=few,
        picture=few, group=place(label, why), tab=WHY if len(each) == 1 else place(label, why),
    )  # fmt: skip


def _first_of_each(each: "Sequence[tuple[str, Why]]", *, drawn: bool) -> Table:
    """A row for each occurrence: the other word and the head that change it most."""
    rows: list[list[Cell]] = []
    for label, why in each:
        words = (cause for cause in why.tokens if has_meaning(cause))
        first = max(words, key=lambda cause: measured(cause, why), default=None)
        head = max(why.heads, key=lambda cause: measured(cause, why))
        token: list[Cell] = ["–", None] if first is None else [name(first), measured(first, why)]
        rows.append([f"{place(label, why)}: {token[0]}", token[1], head.name, measured(head, why)])
    columns = [
        Column("most without token"), Column(CHANGES, 2, bar=True), Column("most without head"), Column(CHANGES, 2),
    ]  # fmt: skip
    return Table(
        name="Each occurrence", title="What changes each occurrence most", columns=columns, rows=rows, screen=drawn,
        picture=drawn, note="Special tokens, sinks and the word itself are left out here.",
    )  # fmt: skip


def name(cause: "Cause") -> str:
    """Name a head, or a token with its number and whether it is a sink."""
    if cause.token is None:
        return cause.name
    text = cause.name.strip() or quoted(cause.name)
    return f"{text} ({SIDES.get(cause.part or '', '')}{cause.token}{', sink' * cause.sink})"


def _note(cause: "Cause") -> str:
    marks = {"sink": cause.sink, "special": cause.special, "the word itself": cause.own}
    return ", ".join(mark for mark, there in marks.items() if there)
