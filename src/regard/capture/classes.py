"""Read a classifier's class names and logits, and reshape its inputs."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

SPAN = ("start", "end")  # classes per token in extractive question answering
CHOICE = ("choice",)  # multiple choice: each text is one choice and has one logit


def class_names(model: Any) -> tuple[str, ...]:
    """Return a classifier's class names in the order of its logits, () for other models.

    The names come from `config.id2label`. Question-answering models have "start" and "end". Multiple-choice models have
    "choice", the score of the text that the model reads.
    """
    kinds = " ".join(base.__name__ for base in type(model).__mro__) + " "
    if "ForQuestionAnswering " in kinds or "ForMultipleChoice " in kinds:
        return SPAN if "ForQuestionAnswering " in kinds else CHOICE
    names = getattr(model.config, "id2label", None) if "Classification " in kinds else None
    return tuple(str(name) for _, name in sorted((int(n), name) for n, name in (names or {}).items()))


def logits_in(output: Any, classes: Sequence[str]) -> Float[Tensor, "B ..."] | None:
    """Return the logits of a pass, (B, L, V), or (B, C) if the model classifies whole texts. None without logits."""
    logits = getattr(output, "logits", None)
    if classes == SPAN and isinstance(getattr(output, "start_logits", None), Tensor):
        logits = torch.stack([output.start_logits, output.end_logits], -1)
    return logits if isinstance(logits, Tensor) and logits.ndim in ((2, 3) if classes else (3,)) else None


def probabilities(logits: Float[Tensor, " C"], labels: Sequence[str], model: Any) -> Float[Tensor, " C"] | None:
    """Return the probabilities of labels or tokens, (C,). None for a single score or start and end logits.

    Mutually exclusive labels use softmax. Multi-label classifiers use a sigmoid per label.
    """
    if len(labels) == 1 or labels == SPAN:
        return None
    several = getattr(model.config, "problem_type", None) == "multi_label_classification"
    return logits.sigmoid() if labels and several else logits.softmax(-1)
