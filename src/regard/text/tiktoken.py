"""Encode texts with tiktoken's cl100k_base. After `regard fetch`, this needs no network."""

import codecs
import os
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.fetched import find
from regard.text.tokens import Token, spelled_token_bytes

if TYPE_CHECKING:
    from tiktoken import Encoding

CACHED = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # name of the file with the merge ranks in tiktoken's cache
HOW = f"run regard fetch cl100k_base, or save its ranks (cl100k_base.tiktoken) as {CACHED} in TIKTOKEN_CACHE_DIR"


def cl100k_base() -> "Encoding":
    """Load cl100k_base, with merge ranks from TIKTOKEN_CACHE_DIR, regard's or tiktoken's cache, or the network."""
    try:
        import tiktoken
    except ImportError:
        raise RegardError("cl100k_base needs the package tiktoken: pip install 'regard[tiktoken]'") from None
    if folder := find("cl100k_base"):
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    try:
        return tiktoken.get_encoding("cl100k_base")
    except Exception as error:  # network failures raise exceptions of several libraries
        raise RegardError(f"the ranks of cl100k_base are not available ({type(error).__name__}): {HOW}") from None


def cl100k_tokens(text: str, encoding: Any) -> list[Token]:
    """Encode a text with cl100k_base. A token that is part of a character has the character's position."""
    tokens, start, pending = [], 0, b""
    for number in encoding.encode_ordinary(text):
        piece = encoding.decode_single_token_bytes(number)
        decoded = codecs.utf_8_decode(pending + piece)[0]  # the complete characters
        end = start + len(decoded)
        if pending or pending + piece != decoded.encode():  # bytes of incomplete characters
            tokens.append(Token(number, spelled_token_bytes(piece), start, max(end, start + 1), None, False, text))
        else:
            tokens.append(Token(number, decoded, start, end, None, False, text))
        pending = (pending + piece)[len(decoded.encode()) :]
        start = end
    return tokens
