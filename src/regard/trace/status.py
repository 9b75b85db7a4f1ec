"""The status of a trace: how it was computed and how exact it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

DEFINITION = "the definition of attention, in float64, on the same queries and keys"  # for regard's own models


@dataclass
class Status:
    """How a trace was computed and how exact it is.

    model: the model's name. kernels: the kernels that computed attention. device: of the model. dtype: of the pass, as
    "float32" or "bfloat16 (autocast)". difference: largest absolute difference between the weights and those of
    compared_with, on rows_compared sampled rows. None if there is nothing to compare with. The model's own attention
    is called with the queries and keys of this pass. docs/families.md reports the differences from a plain pass.
    embedding_difference: largest absolute difference between the sum of the embedding parts and the model's input, None
    if the parts are unknown. These three values cover all texts of a batch. unknown: parts of the text that the
    tokenizer doesn't know. dropped: parts of the text without a token. notes: sentences on other limits of the trace
    and on interventions. seconds: this text's share of the batch's time.
    """

    model: str
    kernels: tuple[str, ...]
    device: str
    dtype: str
    difference: float | None
    rows_compared: int
    embedding_difference: float | None
    unknown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compared_with: str = ""


SMALLEST_DIFFERENCE = 1e-3  # between embeddings and the sum of their known parts; smaller ones aren't reported
UNKNOWN = Status("", (), "", "", None, 0, None)  # for results without a trace


def merge_statuses(encoder: Status, decoder: Status) -> Status:
    """Merge the statuses of the two sides of a forward pass, with the larger differences and all notes."""
    return replace(
        decoder,
        kernels=tuple(sorted({*encoder.kernels, *decoder.kernels})),
        difference=largest_status_difference([encoder.difference, decoder.difference]),
        compared_with=decoder.compared_with or encoder.compared_with,
        rows_compared=max(encoder.rows_compared, decoder.rows_compared),
        embedding_difference=largest_status_difference([encoder.embedding_difference, decoder.embedding_difference]),
        unknown=(*encoder.unknown, *decoder.unknown),
        dropped=(*encoder.dropped, *decoder.dropped),
        notes=tuple(dict.fromkeys((*encoder.notes, *decoder.notes))),
        seconds=max(encoder.seconds, decoder.seconds),
    )


def note_sentences(statuses: Sequence[Status]) -> list[str]:
    """Return all notes of the statuses as sentences, without duplicates, and a note on unknown parts of embeddings."""
    notes = dict.fromkeys(note.removesuffix(".") for status in statuses for note in status.notes)
    difference = max((status.embedding_difference or 0.0 for status in statuses), default=0.0)
    unknown = f"The known parts of the embeddings differ from their sum by {difference:.1e}."
    return [*(f"{note[:1].upper()}{note[1:]}." for note in notes), *[unknown] * (difference >= SMALLEST_DIFFERENCE)]


def exactness(statuses: Sequence[Status]) -> str:
    """Return a sentence on the exactness of the weights in runs of one model."""
    difference = largest_status_difference([status.difference for status in statuses])
    if difference is None:
        return "Not checked: the model has no attention function to compare the weights with."
    rows = max(status.rows_compared for status in statuses)
    by_definition = any(status.compared_with == DEFINITION for status in statuses)
    reference = "the definition of attention" if by_definition else "the model's own attention"
    return f"Checked: weights within {difference:.1e} of {reference} ({rows:,} rows)."


def largest_status_difference(values: Sequence[float | None]) -> float | None:
    """Return the largest difference, or None if none was measured."""
    return max((value for value in values if value is not None), default=None)
