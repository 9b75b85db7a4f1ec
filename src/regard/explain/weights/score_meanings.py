"""What each score of a head means, for tables, plots, pages and sentences."""

from dataclasses import dataclass

SHARE = "share"  # of a token's attention, from 0 to 1
ALIKE = "likeness"  # of the attention of two texts, from 0 to 1


@dataclass(frozen=True)
class Meaning:
    """What a score measures, and the target of a head's attention if it has a high score.

    looks_at: the target in a few words, empty if no overview lists the score. says: the meaning as a sentence. unit:
    "share", "likeness", "nats" or "tokens". mean_of: the tokens that the score averages over, if not all.
    """

    looks_at: str
    says: str
    unit: str = SHARE
    mean_of: str = ""


MEANINGS = {
    "previous": Meaning("the previous token", "How much a token attends to the previous token."),
    "next": Meaning(
        "the next token", "How much a token attends to the next token.", mean_of="followed by another token"
    ),
    "same": Meaning("the token itself", "How much a token attends to itself."),
    "special": Meaning("special tokens", "How much a token attends to special tokens such as [CLS]."),
    "first": Meaning("the first token", "How much a token attends to the first token of the text."),
    "sinks": Meaning(
        "attention sinks", "How much a token attends to attention sinks, which attract attention whatever they mean."
    ),
    "duplicate": Meaning(
        "earlier duplicates",
        "How much a token attends to its earlier occurrences in the text.",
        mean_of="that occurred before",
    ),
    "induction": Meaning(
        "tokens after duplicates",
        "How much a token attends to the token that followed its earlier occurrence.",
        mean_of="that occurred before and were followed by another token",
    ),
    "entropy": Meaning(
        "many tokens, in nats",
        "How evenly a token spreads its attention: its entropy in nats, 0 if a single token gets all.",
        unit="nats",
    ),
    "distance": Meaning(
        "distant tokens", "How far away a token attends: the mean distance in tokens, by weight.", unit="tokens"
    ),
    "position": Meaning(
        "fixed positions",
        "How much a head attends to the same positions after their tokens were shuffled, from 0 to 1.",
        unit=ALIKE,
    ),
    "content": Meaning(
        "tokens, wherever they are",
        "How much a head attends to the same tokens after they moved to other positions, from 0 to 1.",
        unit=ALIKE,
    ),
    "looked": Meaning("", "How much a token attends to the shuffled tokens."),
    "written": Meaning(
        "the source of the next token", "How much attention the source of the token that is written next receives."
    ),
    "read": Meaning(
        "the source of the current token", "How much attention the source of the token that was just read receives."
    ),
    "successor": Meaning(
        "the source token after that",
        "How much attention the source token after that receives.",
        mean_of="whose source is followed by another token",
    ),
}


def is_share(name: str) -> bool:
    """Return whether a score is from 0 to 1, so that all such scores share a scale."""
    return MEANINGS[name].unit in (SHARE, ALIKE)
