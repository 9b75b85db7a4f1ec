"""State in a few sentences how a text was written: how much, how surely, and what the model looked at meanwhile."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.explain.wording import capital, count_of_tokens, listed, named, number, quoted, word_numbered
from regard.questions.generate.writing import Writing
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

if TYPE_CHECKING:
    from regard.questions.generate.answer import Generation, Written

ENDED = {
    "end": "and ended the text itself",
    "stop": "and stopped at a string that it was to stop at",
    "length": "and stopped at the {} asked for",
}
SURE = 0.5  # a probability above which a token was more likely than all others together
PART = 0.01  # parts of attention that are worth a word
LOOKED = 0.02  # and of a single word


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
    """The word of the prompt that it looked at most, where it did: a whole word, what it is made of taken together."""
    every = [(word, share) for word, share in prompt_words(found, tokens) if share is not None]
    told = [(word, share) for word, share in every if wordlike(spelling(tokens, word))]
    sinks = [n for n in found.sink_tokens if n < found.given and not tokens[n].special]
    aside = [n for n in sinks if wordlike(tokens[n].characters)]
    word, share = max(told, key=lambda each: each[1], default=(range(0), 0.0))
    if share < LOOKED or len(told) < 2:
        return ""
    besides = f", {'attention sinks' if len(aside) > 1 else 'the attention sink'} aside," if aside else ""
    name = word_numbered(tokens, word, spelling(tokens, word))
    return capital(f"of the prompt's words{besides} it looked most at {name} ({number(share)}).")


def prompt_words(found: Writing, tokens: Sequence[Token]) -> list[tuple[range, float | None]]:
    """List the prompt's words, the numbers of their tokens, and what each got while the text was written; None where
    a token of it is special or a sink.
    """
    apart = {*found.sink_tokens, *(n for n, token in enumerate(tokens) if token.special)}
    return [
        (word, None if apart & {*word} else sum(found.received[n] for n in word))
        for word in words(tokens[: found.given])
    ]
