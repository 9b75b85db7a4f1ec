"""Make one vector of each window of a text, as the model's folder says: `regard embed --unit texts`.

A text that fits into one window has the vector that `Model.embedding` gives it, and sentence-transformers as well. One
that does not is not cut short: each of its windows begins with the prompt and has a vector, and a row, of its own.
"""

import hashlib
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.corpus.settings import Settings
from regard.corpus.writing.cut_windows import CutText
from regard.corpus.writing.words import Units
from regard.errors import RegardError
from regard.model_files.pooling import Dense, Pooling
from regard.models.model import Model
from regard.models.states import state_width
from regard.trace.sentence_embedding import check_pooling, pool, pooling_behind_prompt, prompted


def settings_for_texts(settings: Settings, model: Model) -> Settings:
    """Say in settings what the model's folder says of texts: the prompt itself, and how their tokens are pooled."""
    if settings.unit != "texts":
        return settings
    check_pooling(model.pooling, model.name)
    if model.pooling.lower_case:
        raise RegardError(f"--unit texts: {model.name} puts texts in lower case, whose characters would be others")
    named = settings.prompt in model.pooling.prompts
    prompt = prompted(model.pooling, None if named else settings.prompt, settings.prompt if named else None)
    return replace(settings, prompt=prompt, pooling=_described(model.pooling))


def text_pooling(settings: Settings, model: Model) -> Pooling:
    """Return how windows that begin with the prompt of the settings are pooled."""
    return pooling_behind_prompt(model.pooling, settings.prompt or "", model.tokenizer)


def vector_width(settings: Settings, model: Model) -> int:
    """Return how many numbers a vector of the store has."""
    width = state_width(model)
    if settings.unit != "texts":
        return width
    pooling = text_pooling(settings, model)
    return len(pool(torch.zeros(pooling.left_out + 1, width), pooling))


def pool_windows(states: Float[Tensor, "B L M"], pooling: Pooling) -> Float[np.ndarray, "B P"]:
    """Pool what left the last layer of each window of a batch, in float32."""
    return torch.stack([pool(each, pooling) for each in states.float()]).cpu().numpy()


def find_windows(cut: CutText) -> Units:
    """Take every window of a text as a unit: it has no word, and the characters from its first token to its last."""
    spans = [slice(*span) for span in cut.spans]
    start, end = (np.array([find(span) for span in spans], np.int64) for find in (cut.first, cut.last))
    count = np.array([len(window.ids) for window in cut.windows], np.int64)
    return Units([""] * len(spans), start, end, np.array([span.start for span in spans], np.int64), count, None)


def _described(pooling: Pooling) -> str:
    """How a model pools, so that another way of it is another text."""
    parts = [*pooling.modes, *map(_described_dense, pooling.dense), *["normalised"] * pooling.normalise]
    return ", ".join([*parts, *["without the prompt"] * (not pooling.include_prompt)])


def _described_dense(layer: Dense) -> str:
    tensors = [each for each in (layer.weight, layer.bias, layer.residual) if isinstance(each, Tensor)]
    digest = hashlib.sha256(b"".join(each.float().contiguous().numpy().tobytes() for each in tensors)).hexdigest()
    residual = " and residual" if layer.residual is not False else ""
    return f"dense {layer.activation}{residual} {digest[:16]}"
