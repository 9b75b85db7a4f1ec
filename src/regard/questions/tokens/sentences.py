"""State in a few sentences how a tokenizer read a text: how many tokens, which words it split, which it repeats."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.explain.wording import listed, quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

if TYPE_CHECKING:
    from regard.questions.tokens.answer import Tokens

NAMED = 3  # words that a sentence names at most
TEXTS = 3  # whose tokens are told, of several
MOST = 4  # sentences about several texts


def of_tokens(found: "Tokens") -> list[str]:
    """Tell how a text was read; of several the first ones, and how much there is of the others."""
    if len(found.found) == 1:
        return tokens_findings(*found.found[0])
    first, others = found.found[:TEXTS], found.found[TEXTS:]
    said = [(n, tokens_findings(*each)[: MOST // len(first)]) for n, each in enumerate(first, 1)]
    told = [f"Text {n}: {sentence[:1].lower()}{sentence[1:]}" for n, sentences in said for sentence in sentences]
    many = sum(len(tokens) for _, tokens in others)
    left = f"{len(others):,} more text{'s' * (len(others) > 1)} with {many:,} token{'s' * (many != 1)} in all."
    return [*told, *[left] * bool(others)]


def tokens_findings(text: str, tokens: Sequence[Token]) -> list[str]:
    """Compose the sentences about one text."""
    about = (_count(text, tokens), _split(tokens), _repeated(tokens), _special(tokens))
    return [sentence for sentence in about if sentence]


def split_words(tokens: Sequence[Token]) -> list[range]:
    """The words that take several tokens, those of most tokens first."""
    found = [word for word in words(tokens) if len(word) > 1]
    return sorted(found, key=lambda word: (-len(word), word[0]))


def _count(text: str, tokens: Sequence[Token]) -> str:
    own = sum(not token.special for token in tokens)
    special = len(tokens) - own
    beside = f" and {special} special one{'s' * (special > 1)}" if special else ""
    inside = any(token.special and token.end > token.start for token in tokens)
    each = f", {len(text) / own:.1f} characters each" if own > 1 and not inside else ""
    many = "s" * (own != 1)
    return f"The text's {len(text)} characters are {own} token{many}{each}{beside}."


def _split(tokens: Sequence[Token]) -> str:
    every = [word for word in words(tokens) if wordlike(spelling(tokens, word)) and not tokens[word[0]].special]
    found = split_words(tokens)
    if not every:
        return ""
    if not found:
        return "No word is split." if len(every) > 1 else ""
    named = [
        f"{quoted(spelling(tokens, word))} into {len(word)} ({' '.join(tokens[n].text.strip() for n in word)})"
        for word in found[:NAMED]
    ]
    left = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
    are = "is" if len(found) == 1 else "are"
    return f"Of {len(every)} words and numbers {len(found)} {are} split: {', '.join(named)}{left}."


def _repeated(tokens: Sequence[Token]) -> str:
    own = [token for token in tokens if not token.special]
    counts = Counter(token.id for token in own)
    texts = {token.id: token.text for token in own}
    often = [(texts[number], times) for number, times in counts.most_common(NAMED) if times > 1]
    if len(own) < 2:
        return ""
    if not often:
        return "No token stands there twice."
    named = [f"{quoted(text)} {times} times" for text, times in often]
    return f"{len(counts)} of the {len(own)} tokens are different; {listed(named)}."


def _special(tokens: Sequence[Token]) -> str:
    """What the tokenizer put there itself, and what in the text it read as special."""
    added = [token.text for token in tokens if token.special and token.end <= token.start]
    read = [token.text for token in tokens if token.special and token.end > token.start]
    parts = ((added, "added by the tokenizer"), (read, "read as special, though the text has it"))
    says = [
        f"{listed(list(dict.fromkeys(names)))} {'was' if len(names) == 1 else 'were'} {how}"
        for names, how in parts
        if names
    ]
    return f"{'; '.join(says)}." if says else ""
