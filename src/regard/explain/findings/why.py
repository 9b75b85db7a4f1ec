"""State in a few sentences which tokens and heads moved a word, and whether attention weights tell as much."""

from collections.abc import Sequence

from regard.explain.causes.why import Cause, Why
from regard.explain.findings.wording import CLOSE, agreement, listed, number, quoted

MOST = 5  # sentences
LEAST = 1e-4  # measured changes below it are not worth a name
NAMED = 0.05  # as parts of the largest change: those from which on others are named beside it
MEASURES = {
    "effect": ("its contextual embedding", "as 1 - cosine"),
    "divergence": ("what the model says next", "in nats, as KL divergence"),
}


AFTER = {"effect": "the contextual embedding of {}", "divergence": "what the model says after {}"}  # of no one's look


def why_findings(found: Sequence[tuple[str, Why]]) -> list[str]:
    """Compose the sentences about each occurrence, given by its label as `regard why` has them: five at most.

    One occurrence gets all that is to be said; of several each gets what changes it most.
    """
    if len(found) == 1:
        why = found[0][1]
        about = (_words(why, _name(found[0], found)), _beside(why), _most_looked_at(why), _heads(why), _predicts(why))
        return [sentence for sentence in about if sentence]
    few = found[: MOST if len(found) <= MOST else MOST - 1]
    sentences = [_shortly(why, _name((label, why), found)) for label, why in few]
    if len(few) <= 2:
        sentences += [_heads(why, _name((label, why), found)) for label, why in few]
    left = len(found) - len(few)
    more = [f"{left} more occurrences are in the table."] if left else []
    return [sentence for sentence in [*sentences, *more] if sentence]


def measured(cause: Cause, why: Why) -> float:
    """What the rankings are by: the cause's divergence, or its effect."""
    return cause.effect if why.by == "effect" or cause.divergence is None else cause.divergence


def has_meaning(cause: Cause) -> bool:
    """Whether a token is another one with a meaning: neither special, nor a sink, nor of the word itself."""
    return not (cause.special or cause.sink or cause.own)


def _name(one: tuple[str, Why], every: Sequence[tuple[str, Why]]) -> str:
    label, why = one
    where = "target" if why.side == "target" else "text"
    return quoted(why.word) + (f" of {where} {label}" if len(every) > 1 else "")


def _token(cause: Cause) -> str:
    return quoted(cause.name) + (" of the source" if cause.part == "cross" else "")


def _others(why: Why) -> list[Cause]:
    """The tokens with a meaning that changed anything, those first that changed most, whatever they are ranked by."""
    return [cause for cause in _by_change(why) if has_meaning(cause) and measured(cause, why) >= LEAST]


def _by_change(why: Why) -> list[Cause]:
    return sorted(why.tokens, key=lambda cause: -measured(cause, why))


def _words(why: Why, name: str) -> str:
    """Without which tokens the word would change most."""
    others = _others(why)
    if not any(has_meaning(cause) for cause in why.tokens):
        return f"{name} looks at no other word: only at itself, special tokens and sinks."
    if not others:
        what = "it" if why.by == "effect" else "what the model says next"
        return f"No single other word matters to {name}: without any one of them {what} changes by less than {LEAST}."
    first, *more = _largest(others, why)
    changed, unit = MEASURES[why.by]
    then = "; next " + listed([_sized(each, why) for each in more]) if more else ""
    by = f"by {number(measured(first, why))}, {unit}"
    who = name if why.tokens_by == "edges" else "no token"
    changed = changed if why.tokens_by == "edges" else AFTER[why.by].format(name)
    may = "could not" if why.tokens_by == "edges" else "could"
    return f"If {who} {may} look at {_token(first)}, {changed} would change most ({by}){then}."


def _largest(causes: Sequence[Cause], why: Why) -> list[Cause]:
    """The first and at most two others, where they change a part of what it does that is worth a word."""
    return [cause for cause in causes[:3] if measured(cause, why) >= NAMED * measured(causes[0], why)]


def _sized(cause: Cause, why: Why) -> str:
    return f"{_token(cause)} ({number(measured(cause, why))})"


def _shortly(why: Why, name: str) -> str:
    others = _others(why)
    if not others:
        return _words(why, name)
    rest = [_sized(each, why) for each in _largest(others, why)]
    of = "" if why.by == "effect" else ", by what the model says next"
    return f"{name} would change most without {rest[0]}{of}" + (f"; then {listed(rest[1:])}." if rest[1:] else ".")


def _beside(why: Why) -> str:
    """What changes more than any other word: special tokens, sinks, the word itself."""
    best = max((measured(each, why) for each in _others(why)), default=LEAST)
    more = [each for each in _by_change(why) if not has_meaning(each) and measured(each, why) > best]
    if not more:
        return ""
    first, change = more[0], number(measured(more[0], why))
    if first.own:
        what = "its look at itself" if why.tokens_by == "edges" else "its own part, seen by it or by others"
        return f"More than any other word does {what}: {change}."
    who = f"word does {first.name}, a special token" if first.special else ""
    who = who or f"other word does {quoted(first.name)}, an attention sink"
    return f"More than any {who} ({change}): without it others share its weight."


def _most_looked_at(why: Why) -> str:
    """Whether the word that is looked at most is the one that matters most."""
    others = _others(why)
    seen = [cause for cause in why.tokens if has_meaning(cause)]
    if len(seen) < 2 or not others:
        return ""
    most, first = max(seen, key=lambda cause: cause.weight), others[0]
    mean = "mean of all layers and heads"
    if (most.token, most.part) == (first.token, first.part):
        return f"{_token(first)} is also the word that it looks at most (weight {number(first.weight)}, {mean})."
    return (
        f"It looks most at {_token(most)} (weight {number(most.weight)}, {mean}), which matters less: "
        f"{number(measured(most, why))} against {number(measured(first, why))} for {_token(first)}."
    )


def _heads(why: Why, name: str = "") -> str:
    """Which heads matter most."""
    found = [cause for cause in why.heads if measured(cause, why) >= LEAST]
    of = f" for {name}" if name else ""
    if not found:
        return f"No single head matters{of}: without any one of them nothing changes by {LEAST}."
    first, *rest = found[:2]
    then = "".join(f"; next {each.name} ({number(measured(each, why))})" for each in rest)
    change = number(measured(first, why))
    return f"Of the {len(why.heads)} heads {first.name} matters most{of}: without it the change is {change}{then}."


def _predicts(why: Why) -> str:
    """How well attention weights and contributions rank the tokens as ablating them does."""
    weight, given = why.tokens_agreement
    if weight != weight or given != given or len(why.tokens) < 4:
        return ""
    than = "about as well" if abs(given - weight) < CLOSE else "better" if given > weight else "worse"
    alike = f"{agreement(weight)} their removal does (rank correlation {weight:.2f})"
    return (
        f"Attention weights alone rank the tokens {alike}; "
        f"contributions (weight × value × output projection) {than} ({given:.2f})."
    )
