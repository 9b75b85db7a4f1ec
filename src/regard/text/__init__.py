"""Tokenize texts, find words in them, and quote words and tokens in sentences."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard.text import neutral_sentences as neutral_sentences
    from regard.text import quoting as quoting
    from regard.text import reader as reader
    from regard.text import tiktoken as tiktoken
    from regard.text import tokenizers as tokenizers
    from regard.text import tokens as tokens
    from regard.text import words as words

__getattr__, __dir__ = lazy_names(__name__)
