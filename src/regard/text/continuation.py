"""Token ids that were written after a text, as text: which characters each of them stands for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.text.tokens import Encoded, Token, encoded_ids, readable_token, special_ids

CONTEXT = 8  # tokens decoded along with new ones: many decoders leave out a blank where a text begins
BROKEN = "\ufffd"  # what a decoder gives for a part of a character


def begun(tokenizer: Any, start: int) -> Encoded:
    """Encode a decoder's text of which nothing but the start token is written."""
    nothing = Encoded("", (), None, (), ())
    return encoded_ids([start]) if tokenizer is None else nothing.after(tokenizer, start)


def continued(tokenizer: Any, encoded: Encoded, ids: Sequence[int]) -> Encoded:
    """Append written tokens to a text, each with its characters.

    Special tokens stand for none. Tokens that spell one character between them share it; what spells no whole character
    in the end is the replacement character.
    """
    if tokenizer is None:
        return encoded_ids([*encoded.ids, *ids])
    special = special_ids(tokenizer)
    text, tokens = encoded.text, list(encoded.tokens)
    before = [token.id for token in tokens if token.id not in special][-CONTEXT:]
    word = max((token.word for token in tokens if token.word is not None), default=-1)
    pending: list[int] = []

    def decoded(numbers: Sequence[int]) -> str:
        return tokenizer.decode(numbers, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def write(*, whole: bool) -> None:
        """Give the pending tokens their characters; where whole, only once they spell whole ones."""
        nonlocal text, word, before
        old, new = decoded(before), decoded([*before, *pending])
        piece = new[len(old) :] if new.startswith(old) else decoded(pending)
        if not pending or (whole and piece.endswith(BROKEN)):
            return
        bare = piece.strip()
        start = len(text) + (len(piece) - len(piece.lstrip()) if bare else 0)
        joins = text and bare and start == len(text) and text[-1].isalnum() and bare[0].isalnum()
        word += not joins or word < 0
        for number in pending:
            tokens.append(Token(number, readable_token(tokenizer, number), start, len(text) + len(piece), word, False))
        text += piece
        before = [*before, *pending][-CONTEXT:]
        pending.clear()

    for number in ids:
        if number in special:
            write(whole=False)
            tokens.append(Token(number, readable_token(tokenizer, number), len(text), len(text), None, True))
        else:
            pending.append(number)
            write(whole=True)
    write(whole=False)
    return replace(encoded, text=text, tokens=tuple(replace(token, source=text) for token in tokens), segments=None)
