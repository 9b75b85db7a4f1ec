"""The tokenizer cl100k_base, through tiktoken; without a network from a file of its ranks."""

import codecs
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.fetched import find
from regard.text.tokens import Token, spelled_token_bytes

if TYPE_CHECKING:
    from tiktoken import Encoding

RANKS = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"  # sha256 of the ranks as published
CACHED = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # the name that tiktoken's cache gives them
HOW = (
    "run regard fetch cl100k_base, give the published file of ranks (cl100k_base.tiktoken) with --ranks FILE, or name "
    f"a folder that holds it as {CACHED} in TIKTOKEN_CACHE_DIR"
)


def cl100k_base(ranks: Path | None = None) -> "Encoding":
    """Load the tiktoken encoding. ranks: a local file of its ranks; else regard's cache, tiktoken's, or the network."""
    try:
        import tiktoken
    except ImportError:
        raise RegardError("cl100k_base needs the package tiktoken: pip install 'regard[tiktoken]'") from None
    if ranks is None and (folder := find("cl100k_base")) and (folder / CACHED).is_file():
        ranks = folder / CACHED
    with _tiktoken_cache_of_ranks(ranks):
        try:
            return tiktoken.get_encoding("cl100k_base")
        except Exception as error:  # no network fails in many ways, all of them of other libraries
            raise RegardError(f"the ranks of cl100k_base are not available ({type(error).__name__}): {HOW}") from None


def cl100k_tokens(text: str, encoding: Any) -> list[Token]:
    """Encode a text. A token that is a part of a character has the character's place, and its bytes as text."""
    tokens, start, pending = [], 0, b""
    for number in encoding.encode_ordinary(text):
        piece = encoding.decode_single_token_bytes(number)
        whole = codecs.utf_8_decode(pending + piece)[0]  # the characters that are complete
        end = start + len(whole)
        if pending or pending + piece != whole.encode():  # bytes that are no characters by themselves
            tokens.append(Token(number, spelled_token_bytes(piece), start, max(end, start + 1), None, False, text))
        else:
            tokens.append(Token(number, whole, start, end, None, False, text))
        pending = (pending + piece)[len(whole.encode()) :]
        start = end
    return tokens


@contextmanager
def _tiktoken_cache_of_ranks(ranks: Path | None) -> Iterator[None]:
    """Let tiktoken find the given ranks, checked, in a cache of its own kind inside the block."""
    if ranks is None:
        yield
        return
    try:
        content = ranks.read_bytes()
    except OSError as error:
        raise RegardError(f"--ranks {str(ranks)!r} cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != RANKS:
        raise RegardError(f"--ranks {str(ranks)!r} is not the published file of ranks of cl100k_base")
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / CACHED).write_bytes(content)
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
