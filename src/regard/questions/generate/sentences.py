"""State in a few sentences how a text was written: how much, how surely, and what the model looked at meanwhile."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.explain.wording import capital, count_of_tokens, listed, named, number, quoted
from regard.questions.generate.writing import Writing
from regard.text.tokens import Token
from regard.text.word_pieces import wordlike

if TYPE_CHECKING:
    from regard.questions.generate.answer import Generation, Written

ENDED = {
    "end": "and ended the text itself",
    "stop": "and stopped at a string that it was to stop at",
    "length": "and stopped at the {} asked for",
}
SURE = 0.5  # a probability above which a token was more likely than all others together
PART = 0.01  # parts of attention that are worth a word
LOOKED = 0.02  # and of a single token


def of_generation(found: "Generation") -> list[str]:
    """Say how it was written; of two texts where they part, and of each how much and how surely."""
    if found.steered is None:
        return writing_findings(found.plain.how, found.plain.tokens)
    said = [_parting(found.plain, found.steered, found.parts_at)]
    for name, own in found.each:
        said += [f"{capital(name)}: {each[:1].lower()}{each[1:]}" for each in writing_findings(own.how, own.tokens)[:2]]
    return said


def _parting(plain: "Written", steered: "Written", at: int | None) -> str:
    """Where the steered text becomes another than the plain one."""
    if at is None:
        return "Both texts are the same: steered, the model writes what it writes plain."
    ways = [
        f"{name} writes {named(own.tokens, own.how.tokens[at].token)} ({number(own.how.tokens[at].probability)})"
        if at < len(own.how.tokens)
        else f"{name} ends"
        for name, own in (("plain", plain), ("steered", steered))
    ]
    before = "" if at == 0 else f", after {named(plain.tokens, plain.how.given + at - 1)}"
    return f"Both texts part at token {at + 1} of what is written{before}: {' where '.join(ways)}."


def writing_findings(found: Writing, tokens: Sequence[Token]) -> list[str]:
    """Compose the sentences. tokens: of the whole text, prompt included."""
    ended = ENDED[found.ended].format(count_of_tokens(len(found.tokens)))
    if not found.tokens:
        return [f"It wrote nothing after the {count_of_tokens(found.given)} given {ended}."]
    length = f"It wrote {count_of_tokens(len(found.tokens))} after the {found.given} given, {ended}."
    about = (length, _sure(found), _least(found, tokens), _what_writing_attended_to(found), _looked_at(found, tokens))
    return [sentence for sentence in about if sentence]


def _sure(found: Writing) -> str:
    """How many of the tokens were likely, and how many were the likeliest."""
    count = len(found.tokens)
    sure = sum(each.probability > SURE for each in found.tokens)
    others = sum(each.rank > 0 for each in found.tokens)
    if others == 0:
        each = "each is the one it found likeliest" if count > 1 else "it is the one it found likeliest"
    else:
        each = f"{others} {'is' if others == 1 else 'are'} not what it found likeliest"
    return f"It gave {sure} of the {count} a probability above {SURE}; {each}."


def _least(found: Writing, tokens: Sequence[Token]) -> str:
    """The token that it found least likely, and what it found likelier or next."""
    if len(found.tokens) < 2:
        return ""
    least = min(found.tokens, key=lambda each: each.probability)
    others = [each for each in least.likeliest if each.id != tokens[least.token].id]
    own = f"Least likely was {named(tokens, least.token)} ({number(least.probability)}"
    before = f", after {named(tokens, least.token - 1)})" if not tokens[least.token - 1].special else ")"
    if not others:
        return f"{own}{before}."
    says = f"{quoted(others[0].text)} ({number(others[0].probability)})"
    return f"{own}{before}: {'likelier was' if least.rank > 0 else 'next came'} {says}."


def _what_writing_attended_to(found: Writing) -> str:
    """What its attention went to."""
    named_parts = (
        ("to special tokens", found.special),
        ("to attention sinks", found.sinks),
        ("to the rest of the prompt" if found.special + found.sinks >= PART else "to the prompt", found.prompt),
        ("to what it had written", found.own),
    )
    parts = [f"{part:.0%} {name}" for name, part in named_parts if part >= PART]
    return f"Meanwhile its attention went {listed(parts)} (mean of all layers and heads)." if parts else ""


def _looked_at(found: Writing, tokens: Sequence[Token]) -> str:
    """The word of the prompt that it looked at most, where it did."""
    special = [token.special for token in tokens]
    every = [n for n in range(found.given) if wordlike(tokens[n].text) and not special[n]]
    words = [n for n in every if n > 0 or found.sinks < PART]  # the first token of a causal model is mostly a sink
    aside = ", the first aside," if words != every else ""
    best = max(words, key=lambda n: found.received[n], default=None)
    if best is None or found.received[best] < LOOKED or len(words) < 2:
        return ""
    return capital(
        f"of the prompt's words{aside} it looked most at {named(tokens, best)} ({number(found.received[best])})."
    )
