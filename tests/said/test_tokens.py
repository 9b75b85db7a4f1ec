"""Sentences about a text's tokens, held against all of them."""

import random
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from regard.questions.tokens.sentences import tokens_findings
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows

WORDS = ("a", "river", "fish+ing", "the", "the", "un+believ+able", "42", ".", ",", "re+write")


def answer(draw: random.Random) -> SimpleNamespace:
    """A text of some words, some of several pieces, with special tokens around it or in it or none."""
    words = draw.choices(WORDS, k=draw.randint(1, 9))
    ids = {piece: n for n, piece in enumerate(sorted({p for word in WORDS for p in word.split("+")}))}
    tokens, place = [], 0
    frame = draw.random() < 0.5
    if frame:
        tokens.append(Token(100, "[CLS]", 0, 0, None, True))
    for word in words:
        for n, piece in enumerate(word.split("+")):
            text = f"##{piece}" if n else piece
            tokens.append(Token(ids[piece] + 50 * (n > 0), text, place, place + len(piece), None, False))
            place += len(piece)
        place += 1
    text = " ".join(word.replace("+", "") for word in words)
    if draw.random() < 0.2:
        text += " <end>"
        tokens.append(Token(102, "<end>", place, place + 5, None, True))
    elif frame:
        tokens.append(Token(101, "[SEP]", len(text), len(text), None, True))
    tokens = [replace(each, source=text) for each in tokens]
    return SimpleNamespace(text=text, tokens=tokens, words=words, own=[each for each in tokens if not each.special])


def count(groups: Groups, numbers: Any) -> None:
    shows(groups["characters"], len(numbers.text))
    shows(groups["own"], len(numbers.own))
    shows(groups["special"] or "0", len(numbers.tokens) - len(numbers.own))
    if groups["each"]:
        shows(groups["each"], len(numbers.text) / len(numbers.own))


def split(groups: Groups, numbers: Any) -> None:
    shows(groups["words"], sum(any(map(str.isalnum, word)) for word in numbers.words))
    pieces = [word.split("+") for word in numbers.words if "+" in word]
    shows(groups["split"], len(pieces))
    told = re.findall(r"“(\w+)” into (\d) \(([^)]+)\)", groups["names"] or "")
    for word, many, spelled in told:
        own = spelled.replace("##", "").split()
        assert own in pieces
        assert (word, int(many)) == ("".join(own), len(own))
    named = [int(many) for _, many, _ in told]
    assert named == sorted(map(len, pieces), reverse=True)[:3], "those of most tokens come first"
    shows(groups["more"] or "0", len(pieces) - len(told))


def whole(groups: Groups, numbers: Any) -> None:
    assert not any("+" in word for word in numbers.words)


def repeated(groups: Groups, numbers: Any) -> None:
    every = Counter(each.text for each in numbers.own)
    shows(groups["different"], len(every))
    shows(groups["own"], len(numbers.own))
    told = [(name, int(times)) for name, times in re.findall(r"“([^”]+)” (\d) times", groups["names"] or "")]
    assert all(every[name] == times > 1 for name, times in told)
    assert [times for _, times in told] == [times for _, times in every.most_common(3) if times > 1]


def once(groups: Groups, numbers: Any) -> None:
    assert max(Counter(each.text for each in numbers.own).values()) == 1


def special(groups: Groups, numbers: Any) -> None:
    for name, inside in (("added", False), ("read", True)):
        own = [each.text for each in numbers.tokens if each.special and (each.end > each.start) == inside]
        assert re.findall(r"\[\w+\]|<\w+>", groups[name] or "") == own


TEMPLATES = [
    Template(
        "count", r"The text's (?P<characters>\d+) characters are (?P<own>\d+) tokens?(?:, (?P<each>[\d.]+) "
        r"characters each)?"
        r"(?: and (?P<special>\d) special ones?)?\.", count,
    ),
    Template(
        "split", r"Of (?P<words>\d+) words and numbers (?P<split>\d+) (?:is|are) split: (?P<names>.+?)(?:, and "
        r"(?P<more>\d+) more)?\.", split,
    ),
    Template("whole", r"No word is split\.", whole),
    Template("repeated", r"(?P<different>\d+) of the (?P<own>\d+) tokens are different; (?P<names>.+)\.", repeated),
    Template("once", r"No token stands there twice\.", once),
    Template(
        "special", r"(?:(?P<added>\S+(?: and \S+)?) (?:was|were) added by the tokenizer)?(?:; )?"
        r"(?:(?P<read>\S+) was read as special, though the text has it)?\.", special,
    ),
]  # fmt: skip


def test_every_sentence_about_random_tokens_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(8)
    for _ in range(150):
        each = answer(draw)
        spoke += hold(tokens_findings(each.text, each.tokens), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
