"""State in a few sentences which tokens and heads moved a word, and whether attention weights tell as much.

A ranking of tokens has special tokens, attention sinks and the word itself in it. What is said of other words alone
says that these are left out, and what they do comes after it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.explain.causes.token_rankings import token_ranking_reason
from regard.explain.wording import CLOSE, agreement, capital, listed, number, quoted
from regard.questions.why.measures import CHANGED, CHANGES, WEIGHT

if TYPE_CHECKING:
    from regard.questions.why.answer import Cause, Why, _Ranked

MOST = 5  # sentences
LEAST = 1e-4  # measured changes below it are not worth a name
NAMED = 0.05  # as parts of the largest change: those from which on others are named beside it
ASIDE = "special tokens, attention sinks and the word itself aside"


def of_causes(found: "_Ranked") -> list[str]:
    """Compose the sentences about each occurrence: five at most.

    One occurrence gets all that is to be said; of several each gets what changes it most.
    """
    every = found.each()
    if len(every) == 1:
        why = every[0][1]
        about = (
            _why_words_matter(why, _asked_outcome_name(every[0], every)),
            _causes_beside_words(why),
            _most_looked_at(why),
            _why_heads_matter(why),
            _predicts(why),
        )
        return [sentence for sentence in about if sentence]
    few = every[: MOST if len(every) <= MOST else MOST - 1]
    sentences = [_shortly(why, _asked_outcome_name((label, why), every)) for label, why in few]
    if len(few) <= 2:
        sentences += [_why_heads_matter(why, _asked_outcome_name((label, why), every)) for label, why in few]
    left = len(every) - len(few)
    more = [f"{left} more occurrences are in the table."] if left else []
    return [sentence for sentence in [*sentences, *more] if sentence]


def exactness_of_why(found: "_Ranked") -> list[str]:
    """Say what the numbers are, and what tokens are ranked by."""
    whys = [why for _, why in found.each()]
    lines = [f"{CHANGES}: {CHANGED[by].of_tokens}" for by in sorted({why.by for why in whys})]
    lines.append(f"{WEIGHT.heading} of a token: {WEIGHT.of_tokens}")
    lines += [token_ranking_reason(*each) for each in dict.fromkeys((why.tokens_by, why.by) for why in whys)]
    if any(cause.sink for why in whys for cause in why.tokens):
        lines.append("sink: a token that most heads give far more than its share, whatever it means")
    return [f"{capital(line)}." for line in lines]


def place(label: str, why: "Why") -> str:
    """Say where an occurrence is: "text 2a", or "target 1"."""
    return f"{'target' if why.part == 'decoder' else 'text'} {label}"


def measured(cause: "Cause", why: "Why") -> float:
    """Say what the rankings are by: the cause's divergence, or its effect."""
    return cause.effect if why.by == "effect" or cause.divergence is None else cause.divergence


def has_meaning(cause: "Cause") -> bool:
    """Tell whether a token is another one with a meaning: neither special, nor a sink, nor of the word itself."""
    return not (cause.special or cause.sink or cause.own)


def _asked_outcome_name(one: "tuple[str, Why]", every: "Sequence[tuple[str, Why]]") -> str:
    return quoted(one[1].word) + (f" of {place(*one)}" if len(every) > 1 else "")


def _token(cause: "Cause", why: "Why") -> str:
    """A token's name, and what it is where it is no other word."""
    of = " of the source" if cause.part == "cross" else ""
    if cause.own:
        whole = cause.name.strip().casefold() == why.word.strip().casefold()
        return f"{quoted(cause.name)} itself" if whole else f"its own {quoted(cause.name)}"
    if cause.special:
        return f"the special token {cause.name.strip()}{of}"
    return ("the attention sink " if cause.sink else "") + quoted(cause.name) + of


def _causes_with_meaning(why: "Why") -> "list[Cause]":
    """The tokens with a meaning that changed anything, those first that changed most, whatever they are ranked by."""
    return [cause for cause in _by_change(why) if has_meaning(cause) and measured(cause, why) >= LEAST]


def _set_aside(why: "Why") -> "list[Cause]":
    """The tokens without a meaning of their own, those first that changed most."""
    return [cause for cause in _by_change(why) if not has_meaning(cause)]


def _by_change(why: "Why") -> "list[Cause]":
    return sorted(why.tokens, key=lambda cause: -measured(cause, why))


def _aside(named: "Sequence[Cause]", why: "Why") -> bool:
    """Whether a sentence that names these words first leaves out a token that changed no less than one of them."""
    least = min((measured(each, why) for each in named), default=LEAST)
    return any(measured(each, why) >= least for each in _set_aside(why))


def _why_words_matter(why: "Why", name: str) -> str:
    """Without which tokens the word would change most."""
    others = _causes_with_meaning(why)
    if not any(has_meaning(cause) for cause in why.tokens):
        return f"{name} looks at no other word: only at itself, special tokens and sinks."
    if not others:
        what = "it" if why.by == "effect" else CHANGED[why.by].its
        return f"No single other word matters to {name}: without any one of them {what} changes by less than {LEAST}."
    largest = _largest(others, why)
    first, *more = largest
    change = CHANGED[why.by]
    then = "; next " + listed([_sized(each, why) for each in more]) if more else ""
    by = f"by {number(measured(first, why))}, {change.unit}"
    who = name if why.tokens_by == "edges" else "no token"
    changed = change.its if why.tokens_by == "edges" else change.of.format(name)
    may = "could not" if why.tokens_by == "edges" else "could"
    aside = f", {ASIDE}" if _aside(largest, why) else ""
    return capital(f"if {who} {may} look at {_token(first, why)}, {changed} would change most ({by}){aside}{then}.")


def _largest(causes: "Sequence[Cause]", why: "Why") -> "list[Cause]":
    """The first and at most two others, where they change a part of what it does that is worth a word."""
    return [cause for cause in causes[:3] if measured(cause, why) >= NAMED * measured(causes[0], why)]


def _sized(cause: "Cause", why: "Why") -> str:
    return f"{_token(cause, why)} ({number(measured(cause, why))})"


def _shortly(why: "Why", name: str) -> str:
    others = _causes_with_meaning(why)
    if not others:
        return _why_words_matter(why, name)
    largest = _largest(others, why)
    rest = [_sized(each, why) for each in largest]
    of = "" if why.by == "effect" else f", by {CHANGED[why.by].its}"
    aside = f", {ASIDE}" if _aside(largest, why) else ""
    return f"{name} would change most without {rest[0]}{of}{aside}" + (
        f"; then {listed(rest[1:])}." if rest[1:] else "."
    )


def _causes_beside_words(why: "Why") -> str:
    """What special tokens, sinks and the word itself change, where the words' sentence left them out."""
    apart, named = _set_aside(why), _largest(_causes_with_meaning(why), why)
    if not apart or measured(apart[0], why) < LEAST or not _aside(named, why):
        return ""
    first, *more = _largest(apart, why)
    then = f", next {listed([_sized(each, why) for each in more])}" if more else ""
    share = "" if first.own else "; without a special token or a sink others share its weight"
    return f"Of special tokens, sinks and the word itself, {_sized(first, why)} changes it most{then}{share}."


def _most_looked_at(why: "Why") -> str:
    """Which token gets most weight, which other word does, and whether that is the one that matters most."""
    others = _causes_with_meaning(why)
    seen = [cause for cause in why.tokens if has_meaning(cause)]
    if len(seen) < 2 or not others:
        return ""
    top, most = (max(some, key=lambda cause: cause.weight) for some in (why.tokens, seen))
    first, change = others[0], measured(most, why)
    said = f"It looks most at {_token(top, why)} ({WEIGHT.heading} {number(top.weight)}, {WEIGHT.of_tokens})"
    if top is not most:
        said += f"; special tokens, sinks and itself aside, at {_token(most, why)} ({number(most.weight)})"
    if change < measured(first, why):
        less = f"{number(change)} against {number(measured(first, why))}"
        return f"{said}, which changes it less than {_token(first, why)} does: {less}."
    return f"{said}, which {'of other words ' * _aside([first], why)}changes it most, too."


def _why_heads_matter(why: "Why", name: str = "") -> str:
    """Which heads matter most."""
    ranked = sorted(why.heads, key=lambda cause: -measured(cause, why))
    found = [cause for cause in ranked if measured(cause, why) >= LEAST]
    of = f" for {name}" if name else ""
    if not found:
        return f"No single head matters{of}: without any one of them nothing changes by {LEAST}."
    first, *rest = found[:2]
    then = "".join(f"; next {each.name} ({number(measured(each, why))})" for each in rest)
    change = number(measured(first, why))
    return f"Of the {len(why.heads)} heads {first.name} matters most{of}: without it the change is {change}{then}."


def _predicts(why: "Why") -> str:
    """How well attention weights and contributions rank the tokens as taking them away does."""
    weight, given = why.tokens_agreement
    if weight != weight or given != given or len(why.tokens) < 4:
        return ""
    than = "about as well" if abs(given - weight) < CLOSE else "better" if given > weight else "worse"
    what = "ablating its looks at them" if why.tokens_by == "edges" else "their removal"
    shown = [number(each) for each in (weight, given)]
    alike = f"{agreement(weight)} {what} does (rank correlation {shown[0]})"
    return (
        f"Attention weights alone rank the tokens {alike}; "
        f"contributions (weight × value × output projection) {than} ({shown[1]})."
    )
