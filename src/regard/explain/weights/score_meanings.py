"""What each score of a head means, once: terminal, page, picture and sentences all take it from here."""

from dataclasses import dataclass

SHARE = "share"  # of a token's attention, from 0 to 1
ALIKE = "likeness"  # of the attention of two texts, from 0 to 1


@dataclass(frozen=True)
class Meaning:
    """What a score is. says: in a sentence. looks_at: what a head looks at that has much of it, in a few words; empty
    where the score stands in no table of its own.

    unit: "share", "likeness", "nats" or "tokens". mean_of: of which tokens it is the mean, where that is not all.
    """

    looks_at: str
    says: str
    unit: str = SHARE
    mean_of: str = ""


MEANINGS = {
    "previous": Meaning("the token before", "How much a token attends to the token before it."),
    "next": Meaning(
        "the token after", "How much a token attends to the token after it.", mean_of="with one after them"
    ),
    "same": Meaning("the token itself", "How much a token attends to itself."),
    "special": Meaning("special tokens", "How much of its attention a token gives to special tokens such as [CLS]."),
    "first": Meaning("the first token", "How much a token attends to the first token of the text."),
    "sinks": Meaning(
        "attention sinks",
        "How much of its attention a token gives to attention sinks, which take it whatever they mean.",
    ),
    "duplicate": Meaning(
        "the same token, earlier",
        "How much a token attends to earlier tokens that are the same as it.",
        mean_of="that stood in the same text before",
    ),
    "induction": Meaning(
        "what followed it earlier",
        "How much a token attends to what followed the same token earlier in the text.",
        mean_of="that stood in the same text before with another token behind them",
    ),
    "entropy": Meaning(
        "many tokens, in nats",
        "How evenly a token spreads its attention, in nats: 0 where one token gets all of it.",
        unit="nats",
    ),
    "distance": Meaning(
        "far away, in tokens",
        "How far away the tokens lie that a token attends to: their mean distance in tokens, by weight.",
        unit="tokens",
    ),
    "position": Meaning(
        "a place, any token there",
        "How much a head looks at the same places when other tokens stand there, from 0 to 1.",
        unit=ALIKE,
    ),
    "content": Meaning(
        "a token, at any place",
        "How much a head looks at the same tokens when they stand at other places, from 0 to 1.",
        unit=ALIKE,
    ),
    "looked": Meaning("", "How much of its attention a token gives to the tokens that changed places."),
    "written": Meaning(
        "source of the next token", "How much attention the source of the token that is written now gets."
    ),
    "read": Meaning("source of the token read", "How much attention the source of the token that was just read gets."),
    "successor": Meaning(
        "token after that source",
        "How much attention the source token after that gets.",
        mean_of="whose source has another token behind it",
    ),
}


def is_share(name: str) -> bool:
    """Tell whether a score is from 0 to 1, as shares of attention are: all of these have one scale."""
    return MEANINGS[name].unit in (SHARE, ALIKE)
