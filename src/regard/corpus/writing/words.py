"""Find the words of a text and the tokens that they are made of; words are as `word_spans` has them."""

import functools
import sys
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from regard.corpus.settings import Where, normal
from regard.errors import RegardError
from regard.text.words import word_spans


@dataclass(frozen=True, eq=False)
class Units:
    """The words (or tokens) of a text that are kept, in order: n of each.

    words: as they are looked up. start, end: characters of the text. first: the number of the first token, of all of
    the text's; count: how many tokens. lemmas: None where none were asked for.
    """

    words: list[str]
    start: Int[np.ndarray, " n"]
    end: Int[np.ndarray, " n"]
    first: Int[np.ndarray, " n"]
    count: Int[np.ndarray, " n"]
    lemmas: list[str] | None

    def __len__(self) -> int:
        return len(self.words)

    def take(self, chosen: Int[np.ndarray, " m"]) -> "Units":
        """Return some of them, by their numbers."""
        return Units(
            [self.words[n] for n in chosen],
            self.start[chosen],
            self.end[chosen],
            self.first[chosen],
            self.count[chosen],
            None if self.lemmas is None else [self.lemmas[n] for n in chosen],
        )


def find_words(
    text: str,
    token_starts: Int[np.ndarray, " L"],
    token_ends: Int[np.ndarray, " L"],
    tokens: Int[np.ndarray, " L"],
    where: Where | None,
    language: str | None,
) -> tuple[Units, list[tuple[int, int]]]:
    """Find the words of a text that are kept; and the characters of those that no token stands for.

    token_starts, token_ends, tokens: characters and numbers of the tokens that stand for some, in order. where: which
    words are kept, None for all. language: the one whose lemmas are looked up, None for no lemmas.
    """
    words, spans, lemmas = [], [], []
    for start, end in word_spans(text):
        word = _interned_word_looked_up(text[start:end])
        lemma = None if language is None else find_lemma(text[start:end], language)
        if where is None or (word if where.field == "word" else lemma) in where.values:
            words.append(word)
            spans.append((start, end))
            lemmas.append(lemma)
    edges = np.array(spans, dtype=np.int64).reshape(-1, 2)
    first = np.searchsorted(token_ends, edges[:, 0], side="right")
    last = np.searchsorted(token_starts, edges[:, 1], side="left")
    found = last > first
    known = None if language is None else [str(lemma) for lemma in lemmas]
    units = Units(words, edges[:, 0], edges[:, 1], first, last - first, known).take(np.flatnonzero(found))
    return replace(units, first=tokens[units.first]), [spans[n] for n in np.flatnonzero(~found)]


def find_tokens(
    text: str, token_starts: Int[np.ndarray, " L"], token_ends: Int[np.ndarray, " L"], tokens: Int[np.ndarray, " L"]
) -> Units:
    """Take every token that stands for characters as a unit: it is looked up by those."""
    words = [
        _interned_word_looked_up(text[a:b].strip())
        for a, b in zip(token_starts.tolist(), token_ends.tolist(), strict=True)
    ]
    return Units(words, token_starts, token_ends, tokens, np.ones(len(tokens), np.int64), None)


def check_lemma_language(language: str) -> None:
    """Check that lemmas of a language can be found."""
    try:
        import simplemma
    except ImportError as error:
        raise RegardError('lemmas need simplemma: pip install "regard[corpus]"') from error
    try:
        simplemma.lemmatize("word", lang=language)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RegardError(f"--lemma: simplemma knows no language {language!r}; it needs a code such as en") from error


@functools.lru_cache(maxsize=1 << 17)
def find_lemma(form: str, language: str) -> str:
    """Return the lemma of a word as it stands, composed and case-folded; the word itself where none is known."""
    import simplemma

    return normal(str(simplemma.lemmatize(form, lang=language)))


@functools.lru_cache(maxsize=1 << 17)
def _interned_word_looked_up(word: str) -> str:
    return sys.intern(normal(word))
