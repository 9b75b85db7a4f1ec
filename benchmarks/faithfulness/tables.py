"""The tables of docs/faithfulness.md, from what was measured: each number with its interval."""

from collections.abc import Sequence

from benchmarks.faithfulness.measure import OWN_EDGES, REMOVAL, Data, column
from benchmarks.faithfulness.methods import METHODS
from benchmarks.faithfulness.scores import interval

COLUMNS = (  # of the main table: heading, model, and which rank correlation
    ("MiniLM, cosine", "MiniLM", "absolute"),
    ("MiniLM, moved", "MiniLM", "moved"),
    ("SmolLM2", "SmolLM2", "absolute"),
    ("opus-mt", "opus-mt", "absolute"),
)
UNITS = {"MiniLM": "cosine", "SmolLM2": "nats", "opus-mt": "nats"}
PREDICTED = [each.name for each in METHODS if each.name != "random order"]  # methods that remove nothing
PASSES = {each.name: each.passes for each in METHODS} | {
    OWN_EDGES: "1 and 1 per word",
    REMOVAL: "1 and 1 per word",
}
UNSIGNED = {each.name for each in METHODS if not each.signed}


def main_table(models: Sequence[Data]) -> str:
    """Methods × outcomes: the rank correlation of absolute values, the best of each outcome in bold."""
    known = {each["model"]: each for each in models}
    best = [best_of(known[model], score) for _, model, score in COLUMNS]
    lines = [row("method", *(each[0] for each in COLUMNS), "what it takes"), row(*["---"] * (len(COLUMNS) + 2))]
    for name in [*PREDICTED, OWN_EDGES, "random order"]:
        cells = []
        for (_, model, score), first in zip(COLUMNS, best, strict=True):
            said = with_interval(column(known[model]["texts"], name, score), 2)
            cells.append(f"**{said}**" if name == first else said)
        lines.append(row(name, *cells, PASSES[name]))
    return "\n".join(lines)


def best_of(model: Data, score: str) -> str:
    """The method with the largest mean score, of those that remove nothing."""
    return max(PREDICTED, key=lambda name: mean(model, name, score))


def model_table(model: Data) -> str:
    """Methods × scores of one model."""
    unit = UNITS[model["model"]]
    digits = 3 if unit == "cosine" else 2
    lines = [
        row("method", "rank correlation, signed", f"deletion, {unit}", f"insertion, {unit}"),
        row(*["---"] * 4),
    ]
    for name in [*PREDICTED, OWN_EDGES, REMOVAL, "random order"]:
        texts = model["texts"]
        signed = with_interval(column(texts, name, "signed"), 2)
        if name in UNSIGNED:
            signed = f"({signed})"
        lines.append(
            row(
                name,
                "1" if name == REMOVAL else signed,
                with_interval(column(texts, name, "deletion"), digits),
                with_interval(column(texts, name, "insertion"), digits),
            )
        )
    return "\n".join(lines)


def other_truths(models: Sequence[Data]) -> str:
    """Methods × other ways of measuring what a word did: the rank correlation of absolute values."""
    kinds = (("replaced", "replaced"), ("moved", "moved"), ("with sinks", "with sinks"))
    heads = [f"{each['model']}, {said}" for _, said in kinds for each in models]
    lines = [row("method", *heads), row(*["---"] * (len(heads) + 1))]
    for name in [*PREDICTED, OWN_EDGES, REMOVAL, "random order"]:
        cells = [
            "1" if (name, kind) == (REMOVAL, "with sinks") else f"{mean(each, name, kind):.2f}"
            for kind, _ in kinds
            for each in models
        ]
        lines.append(row(name, *cells))
    return "\n".join(lines)


def mean(model: Data, method: str, score: str) -> float:
    """The mean of a score over texts."""
    return interval(column(model["texts"], method, score))[0]


def with_interval(values: Sequence[float], digits: int) -> str:
    """The mean, and the 95 % interval of the bootstrap behind it."""
    middle, low, high = (f"{each:.{digits}f}" for each in interval(values))
    return f"{middle} [{low}, {high}]"


def row(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"
