"""Check inputs other than text and name their tokens after the pass, and read outputs that are classes.

The other modules of this package need only tokens and states, whether a model reads text, pixels or sound, and whether
it predicts tokens or classes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.recording import Call
from regard.capture.state import LayerStack, shown_stacks
from regard.errors import RegardError
from regard.images import Patches, patch_tokens
from regard.text.tokens import Encoded, Token

SPAN = ("start", "end")  # classes per token in extractive question answering
CHOICE = ("choice",)  # multiple choice: each text is one choice and has one logit
NUMBERED = "The input isn't text, so tokens are named by their number."


@dataclass(frozen=True)
class ModelInput(Encoded):
    """Input tensors of one item. If no text is passed, the tokens are known only after the pass.

    text, tokens: the text that the model reads with them. patches: how an image was cut into patches. Unless the image
    is in a text, the token of the first patch is known only after the pass.
    """

    tensors: Mapping[str, Tensor] | None = None
    patches: Patches | None = None


def check_inputs(inputs: Any, model: Any, takes: Collection[str], name: str) -> ModelInput:
    """Check the input tensors of one item, and move them to the model's device."""
    if not isinstance(inputs, Mapping) or not inputs or not all(isinstance(x, Tensor) for x in inputs.values()):
        raise RegardError("inputs: expected a mapping of names to tensors, such as {'pixel_values': ...}")
    ids = [key for key in inputs if key.endswith("input_ids")]
    if ids:
        raise RegardError(f"inputs: holds token ids ({ids[0]!r}): their texts would be unknown, use ids=")
    foreign = [key for key in inputs if key not in takes]
    if foreign:
        raise RegardError(f"inputs: {name} doesn't take {foreign[0]!r}: its main input is {model.main_input_name!r}")
    several = [key for key, tensor in inputs.items() if tensor.ndim == 0 or tensor.shape[0] != 1]
    if several:
        shape = tuple(inputs[several[0]].shape)
        raise RegardError(f"inputs: {several[0]!r} has shape {shape}, expected a first axis of 1: one item at a time")
    return ModelInput("", (), None, (), (), tensors={key: tensor.to(model.device) for key, tensor in inputs.items()})


def unreadable_inputs(item: ModelInput, model: Any, name: str, error: Exception) -> RegardError:
    """Return the error for tensors that a model can't read, with their shapes and the model's own message."""
    tensors = item.tensors or {}
    shown = ", ".join(f"{key!r} {tuple(x.shape)} {x.dtype}" for key, x in tensors.items())
    without = "" if item.tokens or model.main_input_name in tensors else f" without {model.main_input_name!r}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return RegardError(f"inputs: {name} ({model.dtype}) cannot read {shown}{without}: {lines[0].strip()}")


def named_tokens(
    item: ModelInput, config: Any, stacks: Mapping[str, LayerStack], calls: Sequence[Call], pairs: bool, name: str
) -> ModelInput:
    """Name the tokens of an item in its stack of layers, or for an encoder-decoder in the first stack.

    Tokens of an image are named by their patches, others by their numbers.
    """
    if item.tokens:
        return replace(item, tensors=None)
    if not stacks:
        raise RegardError(f"model {name!r}: no stack of layers was found around an attention that can be seen")
    stack = shown_stacks(stacks, pairs=pairs)[0]
    length = stack.shape[1]
    for n, state in stack.hidden_states.items():
        if state.ndim != 3 or tuple(state.shape[:2]) != (1, length):
            raise RegardError(
                f"model {name!r}: state {n} has shape {tuple(state.shape)}, state 0 "
                f"{stack.shape}: its layers do not keep one row of tokens, it cannot be traced"
            )
    for call in calls:
        shape = call.weights.shape
        if call.path.startswith(f"{stack.path}.") and (shape[0], shape[2]) != (1, length):
            raise RegardError(
                f"model {name!r}: attention {call.path!r} has shape {shape} for {length} tokens: it attends within "
                "parts of them, it cannot be traced"
            )
    if item.patches is not None:
        grid = item.patches.rows, item.patches.columns
        named = patch_tokens(config, grid, length)
        if named is not None:
            patches = replace(item.patches, first=length - grid[0] * grid[1])
            return replace(item, tokens=named, tensors=None, patches=patches)
    tokens = tuple(Token(-1, str(n), 0, 0, None, False) for n in range(length))
    return replace(item, tokens=tokens, notes=(*item.notes, NUMBERED), tensors=None, patches=None)


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
