"""What may be chosen of a trace that is saved: narrower numbers, blocks, and what does not go together."""

from collections.abc import Collection

from regard.errors import RegardError

DTYPES = ("bfloat16", "float16", "float32")
NARROW = ("bfloat16", "float16")


def check_choice(dtype: str | None, attention_outputs: bool, heads: Collection[int] | None) -> None:
    """Refuse a choice that no trace can be saved by. heads: those that are saved, None for all.

    Raises:
        RegardError: another dtype, or choices that exclude each other.
    """
    if dtype is not None and dtype not in DTYPES:
        raise RegardError(f"dtype: given {dtype!r}, needs {', '.join(DTYPES)}, or None for that of the trace")
    if attention_outputs and heads is not None:
        raise RegardError(
            "attention outputs with chosen heads: contributions add up over all heads only; leave out one of both"
        )
    if attention_outputs and dtype in NARROW:
        raise RegardError(
            f"attention outputs with dtype {dtype}: contributions add up to 1e-5 only in the dtype that was traced; "
            "leave out one of both"
        )
