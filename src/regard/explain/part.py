"""Which attention of a model is meant: an encoder-decoder has three parts, every other model one. Without torch."""

from regard.capture.interventions.names import PARTS
from regard.errors import RegardError


def check_explained_part(part: str | None, pairs: bool) -> None:
    """Refuse a part that a model does not have; None is the one that is meant without a word.

    pairs: whether the model is an encoder-decoder.
    """
    if part is not None and not pairs:
        raise RegardError(f"part {part!r}: the model is not an encoder-decoder, its attention has one part")
    if part is not None and part not in PARTS:
        raise RegardError(f"part {part!r}: needs {', '.join(PARTS[:-1])} or {PARTS[-1]}")
