"""Read sentences back: which numbers they print, beside which names, and whether the answer shows these numbers.

Nothing here knows the wording of a sentence. A test of a question asks that what a sentence names is what the numbers
say: the largest, the first, none.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from regard.display.answer import Answer
from regard.display.sentences import MAX_SENTENCES
from regard.display.terminal_parts import plain_lines_of_parts

MAX_WORDS = 25  # of a sentence
STATES = {"hidden_states", "token_embeddings", "last_hidden_state"}
NUMBER = r"[<>]?[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?%?"


def names_in(sentence: str) -> list[str]:
    """List what stands in quotation marks, in order."""
    return re.findall(r"“(.+?)”", sentence)


def numbers_in(sentence: str) -> list[str]:
    """List the numbers a sentence prints, names in quotation marks aside."""
    return re.findall(rf"(?<![\w.]){NUMBER}(?![\w])", re.sub(r"“.+?”", "“”", sentence))


def reads(printed: str, value: float) -> bool:
    """Whether a printed number is the value, rounded to the digits printed, and reads as 0 or 1 only where it is."""
    plain = printed.replace(",", "").replace("−", "-")
    percent, scale = plain.endswith("%"), 100 if plain.endswith("%") else 1
    plain = plain.removesuffix("%")
    if "e" in plain:
        return f"{value:.{len(plain.split('e')[0].partition('.')[2])}e}" == plain
    digits = len(plain.lstrip("<>").partition(".")[2])
    if plain[0] in "<>":
        end = float(plain[1:])
        return (value * scale < end if plain[0] == "<" else value * scale > end) and value not in (0, 1)
    want = f"{value * scale:.{digits}f}"
    want = want.lstrip("-") if float(want) == 0 else want
    return plain.removeprefix("+" if float(want) > 0 or percent else "") == want


def shows(printed: str, value: float) -> None:
    """Assert that a printed number is the value."""
    assert reads(printed, value), f"{printed!r} is printed, the number is {value}"


def plain_and_few(sentences: Sequence[str], most: int = MAX_SENTENCES) -> None:
    """Assert that there are few sentences, short, whole and without what the style guide avoids."""
    assert len(sentences) <= most, sentences
    for sentence in sentences:
        assert len(re.sub(r"“.+?”(?: of “.+?”)?(?: \(\d+\))?", "x", sentence).split()) <= MAX_WORDS, sentence
        assert sentence[0] in "“[‘'<" or not sentence[0].islower(), sentence
        assert sentence.endswith((".", ".”")), sentence
        bare = re.sub(r"“.+?”", "“”", sentence)
        assert ";" not in bare, sentence
        assert "docs/" not in bare, sentence


def all_numbers(data: Any) -> Iterator[float]:
    """Go through every number of JSON data but states, and the number of parts of every list."""
    if isinstance(data, dict):
        for name in data.keys() - STATES:  # hundreds of numbers, among which any would be found
            yield from all_numbers(data[name])
    elif isinstance(data, list | tuple):
        yield float(len(data))
        for value in data:
            yield from all_numbers(value)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield float(data)


def shown_with_its_numbers(answer: Answer, also: Iterable[float] = ()) -> None:
    """Assert that every number in an answer's sentences is in what it shows with them, or in its JSON.

    also: numbers that its JSON does not have, such as a count.
    """
    plain_and_few(answer.findings())
    screen = "\n".join(plain_lines_of_parts(answer.shown(200, 10**6, everything=True)[:-1], 200))
    values = [*all_numbers({k: v for k, v in answer.to_json().items() if k != "findings"}), *also]
    for sentence in answer.findings():
        for printed in numbers_in(sentence):
            assert printed in numbers_in(screen) or any(reads(printed, value) for value in values), (
                f"{printed} is nowhere shown: {sentence!r}"
            )
