"""Say in at most three sentences how a tokenizer split a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import count_of_tokens, listed
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

if TYPE_CHECKING:
    from regard.questions.tokens.answer import Tokens

TEXTS = 3  # of several, that sentences and the first table are about
PIECES = 6  # of a word that are named
TABLE: list[list[Template]] = [
    [("The tokenizer splits {split} of {count} words, {word} into the most pieces ({pieces}).",
      lambda n: n["split"] > 1),
     ("The tokenizer splits only {word} ({pieces}).", None),
     ("The tokenizer splits none of the {count} words.", lambda n: n["count"] > 1)],
    [("The text has {tokens} for {characters}, and the tokenizer adds {added}.", None),
     ("The text has {tokens} for {characters}.", None)],
    [("The tokenizer reads {read} in the text as special.", None)],
]  # fmt: skip
SEVERAL: list[list[Template]] = [
    [("Text {number} has {tokens} for {characters}, with {split} of {count} words split.", lambda n: n["count"] > 1),
     ("Text {number} has {tokens} for {characters}.", None)],
]  # fmt: skip


def of_tokens(answer: "Tokens") -> list[str]:
    """Say which words were split and how many tokens there are, for several texts in one sentence each."""
    if len(answer.found) == 1:
        return sentences(TABLE, _of_text(*answer.found[0]))
    texts = enumerate(answer.found[:TEXTS], 1)
    return [sentence for n, text in texts for sentence in sentences(SEVERAL, {"number": n} | _of_text(*text))]


def _of_text(text: str, tokens: Sequence[Token]) -> dict[str, Any]:
    """Collect the numbers of a text's sentences."""
    named = [word for word in words(tokens) if wordlike(spelling(tokens, word)) and not tokens[word[0]].special]
    split = [word for word in named if len(word) > 1]
    longest = max(split, key=len, default=range(0))
    added = [token.text for token in tokens if token.special and token.end <= token.start]
    read = [token.text for token in tokens if token.special and token.end > token.start]
    return {
        "tokens": count_of_tokens(len(tokens) - len(added)), "count": len(named), "split": len(split),
        "characters": f"{len(text):,} character{'s' * (len(text) != 1)}",
        "word": quoted(spelling(tokens, longest)) if longest else None,
        "pieces": " ".join(tokens[n].text.strip() for n in longest[:PIECES]) + " …" * (len(longest) > PIECES),
        "added": listed(list(dict.fromkeys(added))) or None, "read": listed(list(dict.fromkeys(read))) or None,
    }  # fmt: skip
