"""Read a classifier's class names and logits, and shape its inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

SPAN = ("start", "end")  # the classes of a token for extractive question answering
CHOICE = ("choice",)  # multiple choice: each text is one of the choices, and has one number
SHOWN = 5  # labels that a note names


def class_names(model: Any) -> tuple[str, ...]:
    """Return the names of a classifier's classes, in the order of its logits. A model of another kind has none.

    They are those of `config.id2label`. A model for question answering has "start" and "end", and one for multiple
    choice has "choice", the score of the choice that it reads.
    """
    kinds = " ".join(base.__name__ for base in type(model).__mro__) + " "
    if "ForQuestionAnswering " in kinds or "ForMultipleChoice " in kinds:
        return SPAN if "ForQuestionAnswering " in kinds else CHOICE
    names = getattr(model.config, "id2label", None) if "Classification " in kinds else None
    return tuple(str(name) for _, name in sorted((int(n), name) for n, name in (names or {}).items()))


def logits_in(output: Any, classes: Sequence[str]) -> Float[Tensor, "B ..."] | None:
    """Return the logits of a pass, (B, L, V), or (B, C) if the model classifies whole texts."""
    logits = getattr(output, "logits", None)
    if classes == SPAN and isinstance(getattr(output, "start_logits", None), Tensor):
        logits = torch.stack([output.start_logits, output.end_logits], -1)
    return logits if isinstance(logits, Tensor) and logits.ndim in ((2, 3) if classes else (3,)) else None


def probabilities(logits: Float[Tensor, " C"], labels: Sequence[str], model: Any) -> Float[Tensor, " C"] | None:
    """Return the probabilities of labels or tokens, (C,); None for logits without a choice: a score, starts and ends.

    Labels that exclude each other sum to 1 (softmax). Labels that may hold at once are independent (sigmoid).
    """
    if len(labels) == 1 or labels == SPAN:
        return None
    several = getattr(model.config, "problem_type", None) == "multi_label_classification"
    return logits.sigmoid() if labels and several else logits.softmax(-1)


def one_choice(inputs: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Reshape the inputs of a multiple-choice model to (B, 1, L): each text is the only choice of its row."""
    two = {name for name, x in inputs.items() if classes == CHOICE and isinstance(x, Tensor) and x.ndim == 2}
    return {name: x[:, None] if name in two else x for name, x in inputs.items()}


def logits_note(labels: Sequence[str], logits: Tensor | None) -> tuple[str, ...]:
    """Return a note on the labels of a whole text with the largest logits; nothing for other logits."""
    if logits is None or logits.ndim != 1 or not labels:
        return ()
    best = sorted(zip(logits.tolist(), labels, strict=True), reverse=True)
    named = ", ".join(f"{label} {value:.2f}" for value, label in best[:SHOWN])
    return (f"Logits of the labels: {named}{', …' * (len(best) > SHOWN)}.",)
