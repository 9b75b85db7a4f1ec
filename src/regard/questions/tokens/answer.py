"""Tokenise texts, and hold their tokens, ids and counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from regard.display.answer import Answer, Read
from regard.explain.frames import Row
from regard.models.load import load_tokenizer
from regard.questions.tokens import panels, sentences
from regard.text.tokens import Token, check_texts, encode


@dataclass(frozen=True, eq=False, repr=False)
class Tokens(Answer):
    """The tokens of texts. name: of the tokenizer; found: each text with its tokens."""

    format: ClassVar[str] = "regard tokens"
    findings = sentences.of_tokens
    panels = panels.of_tokens

    name: str
    found: Sequence[tuple[str, Sequence[Token]]]

    def title(self) -> str:
        """Whose tokens."""
        return f"Tokens of {self.name}"

    def rows(self) -> list[Row]:
        """One row a token: its text's number, its place, string, id and characters, and how often the text has it."""
        rows: list[Row] = []
        for number, (_, tokens) in enumerate(self.found, 1):
            times = Counter(token.id for token in tokens)
            rows += [
                {"text": number, "token": n, "string": token.text, "id": token.id, "start": token.start,
                 "end": token.end, "special": token.special, "times": times[token.id]}
                for n, token in enumerate(tokens)
            ]  # fmt: skip
        return rows

    def data(self) -> dict[str, object]:
        """The tokenizer, and each text's tokens."""
        return {"tokenizer": self.name, "tokens": [[asdict(token) for token in each] for _, each in self.found]}


def tokens(texts: Sequence[str], tokenizer: str | None = None, ranks: Path | None = None) -> Tokens:
    """Tokenise texts.

    tokenizer: a model's, by default the default model's; "words", a dictionary of the texts' own; or "cl100k_base",
    whose ranks are in a file, or fetched.
    """
    texts = list(check_texts(texts))
    about = Read(tuple((text, None) for text in texts))
    found = list(zip(texts, _read(texts, tokenizer, ranks), strict=True))
    return Tokens(tokenizer or "the default model", found, about=about)


def _read(texts: Sequence[str], tokenizer: str | None, ranks: Path | None) -> list[Sequence[Token]]:
    if tokenizer == "words":
        from regard.text.word_tokens import word_tokens
        from regard.textbook import dictionary

        numbers = dictionary(" ".join(texts))
        return [word_tokens(text, numbers) for text in texts]
    if tokenizer == "cl100k_base":
        from regard.text.tiktoken import cl100k_base, cl100k_tokens

        encoding = cl100k_base(ranks)
        return [cl100k_tokens(text, encoding) for text in texts]
    opened = load_tokenizer(tokenizer)
    return [encode(opened, text).tokens for text in texts]
