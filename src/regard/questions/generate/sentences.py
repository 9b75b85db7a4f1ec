"""Say in at most three sentences what a model attended to while it wrote, and how certain it was."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.errors import control_name
from regard.explain.wording import listed, named, number, quoted, word_numbered
from regard.questions.generate.writing import Writing
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

if TYPE_CHECKING:
    from regard.questions.generate.answer import Generation, Written

WORTH_NAMING = 0.01  # a part of the attention; a word needs twice as much
TABLE: list[list[Template]] = [
    [
        ("The model wrote nothing after the prompt.", lambda n: n["nothing"]),
        ("Apart from attention sinks, the model attended most to {word} in the prompt (mean weight {weight}).",
         lambda n: n["sinks"] >= WORTH_NAMING),
        ("While writing, the model attended most to {word} in the prompt (mean weight {weight}).", None),
    ],
    [
        ("The least certain token was {least} (probability {probability}). The next candidate was {other} ({chance}).",
         None),
        ("The least certain token was {least} (probability {probability}).", None),
    ],
    [("Its attention went {parts}.", lambda n: not n["nothing"])],
]  # fmt: skip
STEERED: list[list[Template]] = [
    [
        ("Steering changed no token: try a larger {strength} or another {layer}.", lambda n: n["same"]),
        ("The texts differ from written token {at}: {plain} in the plain text, {steered} in the steered text.", None),
    ],
    [("The least certain token was {plain_least} ({plain_chance}) in the plain text and {steered_least} "
      "({steered_chance}) in the steered text.", lambda n: not n["same"])],
]  # fmt: skip


def of_generation(answer: "Generation") -> list[str]:
    """Name the prompt's most attended word and the least likely token, or where the steered text starts to differ."""
    at, numbers = answer.parts_at, _of_text(answer.plain)
    if answer.steered is None:
        return sentences(TABLE, numbers)
    numbers = {
        "same": at is None, "at": at if at is None else at + 1, "strength": control_name("strength", "--strength"),
        "layer": control_name("layer", "--layer"),
    }  # fmt: skip
    for name, text in (("plain", answer.plain), ("steered", answer.steered)):
        own, written = _of_text(text), text.how.tokens
        numbers |= {f"{name}_least": own.get("least"), f"{name}_chance": own.get("probability"), name: "the end"}
        if at is not None and at < len(written):
            chance = number(written[at].probability)
            numbers[name] = f"{named(text.tokens, written[at].token)} (probability {chance})"
    return sentences(STEERED, numbers)


def _of_text(text: "Written") -> dict[str, Any]:
    """Collect the numbers of a text's sentences."""
    writing, tokens = text.how, text.tokens
    numbers: dict[str, Any] = {"nothing": not writing.tokens, "sinks": writing.sinks}
    received = [pair for pair in prompt_words(writing, tokens) if wordlike(spelling(tokens, pair[0]))]
    received = [(word, weight) for word, weight in received if weight is not None]
    word, weight = max(received, key=lambda pair: pair[1] or 0, default=(range(0), 0.0))
    if len(received) > 1 and weight and weight >= 2 * WORTH_NAMING:
        numbers |= {"word": word_numbered(tokens, word, spelling(tokens, word)), "weight": weight}
    if len(writing.tokens) > 1:
        least = min(writing.tokens, key=lambda token: token.probability)
        numbers |= {"least": named(tokens, least.token), "probability": least.probability}
        for other in [other for other in least.likeliest if other.id != tokens[least.token].id][:1]:
            numbers |= {"other": quoted(other.text), "chance": other.probability}
    rest = "to the rest of the prompt" if writing.special + writing.sinks >= WORTH_NAMING else "to the prompt"
    parts = ((writing.special, "to special tokens"), (writing.sinks, "to attention sinks"), (writing.prompt, rest),
             (writing.own, "to the new text"))  # fmt: skip
    numbers["parts"] = listed([f"{part:.0%} {name}" for part, name in parts if part >= WORTH_NAMING]) or None
    return numbers


def prompt_words(writing: Writing, tokens: Sequence[Token]) -> list[tuple[range, float | None]]:
    """List the prompt's words with their mean weight while the text was written, None for special tokens and sinks."""
    apart = {*writing.sink_tokens, *(n for n, token in enumerate(tokens) if token.special)}
    return [
        (word, None if apart & {*word} else sum(writing.received[n] for n in word))
        for word in words(tokens[: writing.given])
    ]
