"""Embed words at known places of texts: a word that a question brings along, or an occurrence that is read again.

Layers are counted as everywhere: the embedding of layer n is what leaves it; that of the last layer is the contextual
embedding, after a last norm where the model has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from regard.errors import RegardError
from regard.text.tokens import shortened
from regard.text.words import Word

if TYPE_CHECKING:  # with which torch would be imported, for every question
    from regard.models.model import Model
    from regard.trace.trace import Trace

POOLINGS = ("mean", "first", "last")  # of a word's tokens: what makes one vector of them
AT_ONCE = 32  # texts whose traces are held together


@dataclass(frozen=True)
class Place:
    """A word in a text, by its characters [start, end)."""

    text: str
    start: int
    end: int

    @property
    def form(self) -> str:
        """Return the word as it stands."""
        return self.text[self.start : self.end]


def embed_places(
    model: "Model", places: Sequence[Place], layers: Sequence[int]
) -> Float[np.ndarray, "places layers poolings M"]:
    """Embed words at their places: from each layer, by each of `POOLINGS`."""
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: needs a model that reads a single text")
    found = []
    for first in range(0, len(places), AT_ONCE):
        some = places[first : first + AT_ONCE]
        texts = list(dict.fromkeys(place.text for place in some))
        traces = model.trace(texts, layers=sorted(set(layers)), logits=False, attention_outputs=False)
        by_text = dict(zip(texts, traces, strict=True))
        found += [_pooled(by_text[place.text], word_at(by_text[place.text], place), layers) for place in some]
    return np.stack(found)


def word_at(trace: "Trace", place: Place) -> Word:
    """Find the tokens of a place in the trace of its text."""
    found = word_there(trace, place)
    if found is None:
        raise RegardError(f"word {place.form!r} of {shortened(place.text)} reached no token: the tokenizer drops it")
    return found


def word_there(trace: "Trace", place: Place) -> Word | None:
    """Find the tokens of a place in the trace of its text; None where the tokenizer has none there."""
    tokens = tuple(n for n, t in enumerate(trace.tokens) if t.start < place.end and t.end > place.start)
    return Word(place.form, place.start, place.end, tokens) if tokens else None


def layer_states_as_array(trace: "Trace", layer: int) -> Float[np.ndarray, "L M"]:
    """Return what leaves a layer; of the last one the contextual embeddings."""
    states = trace.hidden_states
    last = len(states) - 2  # one more state than layers
    return (trace.last_hidden_state if layer == last else states[layer + 1]).detach().float().cpu().numpy()


def _pooled(trace: "Trace", word: Word, layers: Sequence[int]) -> Float[np.ndarray, "layers poolings M"]:
    rows = np.stack([layer_states_as_array(trace, layer)[list(word.tokens)] for layer in layers])
    return np.stack([rows.mean(1), rows[:, 0], rows[:, -1]], axis=1)
