"""Name tokens that are pieces of words by the words as well."""

from collections.abc import Sequence

from regard.explain.findings.wording import quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, words


def named(tokens: Sequence[Token], number: int) -> str:
    """A token in a sentence; of a piece, the word that it is of as well."""
    word = next(each for each in words(tokens) if number in each)
    return quoted(tokens[number].text) + (f" of {quoted(spelling(tokens, word))}" if len(word) > 1 else "")


def numbered(tokens: Sequence[Token], number: int) -> str:
    """A token in a sentence as `named` has it, with its number where another of its text is called the same."""
    same = [each.text.strip() for each in tokens].count(tokens[number].text.strip())
    return named(tokens, number) + (f" ({number})" if same > 1 else "")


def word_numbered(tokens: Sequence[Token], word: Sequence[int], called: str) -> str:
    """A whole word in a sentence, with its first token's number where a word of the same tokens stands elsewhere."""
    others = [spelling(tokens, each) for each in words(tokens) if set(each).isdisjoint(word)]
    return quoted(called) + (f" ({word[0]})" if spelling(tokens, word) in others else "")
