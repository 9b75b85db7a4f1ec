"""Read a text of any length part by part, after a look at the whole: a document is read whole or not at all."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from regard.corpus.reading.document import Document, Rejected
from regard.corpus.reading.parts import cut
from regard.corpus.reading.streams import BLOCK, FAULTS, Stream, reason, text_blocks
from regard.errors import RegardError

_IN_MEMORY = 8 << 20  # bytes of standard input; what is longer is kept in a temporary file


def read_text(
    source: str, opened: Callable[[], AbstractContextManager[Stream]], most: int
) -> Iterator[Document | Rejected]:
    """Read a text in parts of at most `most` characters; it is read twice, so that no part of a bad one is given.

    Characters are counted and kept as they stand, with the ends of lines as they are. A byte order mark at the start is
    the encoding's, and no character of the text.
    """
    try:
        with opened() as stream:
            if said := _no_text(stream):
                yield Rejected(source, None, said)
                return
        with opened() as stream:
            for start, text in cut(text_blocks(stream), most):
                yield Document(source, text, start, source, None, {})
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


@contextmanager
def copied_input() -> Iterator[Callable[[], AbstractContextManager[Stream]]]:
    """Copy standard input, so that it can be opened twice.

    Raises:
        RegardError: there is none.
    """
    if sys.stdin is None:
        raise RegardError("there is no standard input")
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        while block := sys.stdin.buffer.read(BLOCK):
            copy.write(block)

        @contextmanager
        def rewound() -> Iterator[Stream]:
            copy.seek(0)
            yield copy

        yield rewound


def _no_text(stream: Stream) -> str:
    """Say why a stream holds no text; nothing where it does. What cannot be decoded raises."""
    length, blank = 0, True
    for block in text_blocks(stream):
        length += len(block)
        blank = blank and block.isspace()
    return ("blank" if length else "empty") if blank else ""
