"""What a text is made of: tokens, words, tokenizers, word vectors."""

from typing import TYPE_CHECKING

from regard.lazy import lazy_modules

if TYPE_CHECKING:
    from regard.text import continuation as continuation
    from regard.text import reader as reader
    from regard.text import tiktoken as tiktoken
    from regard.text import tokenizers as tokenizers
    from regard.text import tokens as tokens
    from regard.text import word_vectors as word_vectors
    from regard.text import words as words

__all__ = (
    "continuation",
    "reader",
    "tiktoken",
    "tokenizers",
    "tokens",
    "word_vectors",
    "words",
)

__getattr__ = lazy_modules("regard.text", __all__)
