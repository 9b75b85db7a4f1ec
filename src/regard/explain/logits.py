"""Compute the logit lens: what the model would predict if the layers after a hidden state did nothing.

    p_l = softmax(W_U · norm(h_l))

h_l is the hidden state after layer l; norm and W_U are the model's final norm and unembedding (nostalgebraist 2020,
"interpreting GPT: the logit lens"). Layers weren't trained for this, so early predictions often make no sense.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.wording import Place, tokens_of
from regard.models.readout import Readout
from regard.shown import Row, Tabular
from regard.text.tokens import Spelled
from regard.trace.trace import Trace, is_causal

if TYPE_CHECKING:
    from regard.models.model import Model

Names = Callable[[int], str]  # returns the text of a token id


@dataclass(frozen=True)
class Candidate:
    """A token of the vocabulary and its probability."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """The model's prediction at one position, the likeliest tokens first.

    at: the text of the token at this position. after: whether the candidates follow this token (causal) or replace it,
    None for a token classifier's labels. occurrence: the label of the followed word's occurrence, None at the text's
    end or a mask.
    """

    text: int
    token: int
    at: str
    after: bool | None
    occurrence: str | None
    candidates: list[Candidate]


def spoken(trace: Trace, words: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[int, str | None]]:
    """Return the tokens at which predictions are shown, each with its occurrence's label or None.

    words: (label, tokens) of each occurrence. For a causal model, these are the last token of each occurrence and of
    the text. For a masked language model, they are all tokens of the occurrences, and the masks in the text.
    """
    last = len(trace.tokens) - 1
    if is_causal(trace):
        positions: list[tuple[int, str | None]] = [(tokens[-1], label) for label, tokens in words]
        return positions if any(token == last for token, _ in positions) else [*positions, (last, None)]
    masks = [n for n, t in enumerate(trace.tokens) if t.special and t.end > t.start and "mask" in t.text.lower()]
    return [(token, label) for label, tokens in words for token in tokens] + [(n, None) for n in masks]


def written(words: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[int, str | None]]:
    """Return the token before each word of a target, at which the decoder predicts the word, and the word's label."""
    return [(tokens[0] - 1, label) for label, tokens in words if tokens[0] > 0]


def candidates(logits: Float[Tensor, " V"], names: Names, top: int) -> list[Candidate]:
    """Return the `top` most likely tokens of a row of logits, with softmax in float64. Ties are in order of id."""
    chances = logits.double().softmax(-1)
    ids = (chances >= chances.topk(min(top, len(chances))).values[-1]).nonzero()[:, 0]  # much faster than sorting all
    best = chances[ids].sort(descending=True, stable=True)
    pairs = zip(best.values[:top].tolist(), ids[best.indices[:top]].tolist(), strict=True)
    return [Candidate(number, names(number), chance) for chance, number in pairs]


def names_of(*traces: Trace) -> Names:
    """Return a function that spells a token id as the traces' tokenizer, file or texts do, or else as its number."""
    texts = {token.id: token.text for trace in traces for token in trace.tokens}
    names_of_ids = next((trace.names for trace in traces if trace.names is not None), None)
    if names_of_ids is not None and not isinstance(names_of_ids, Spelled):
        return names_of_ids
    for trace in traces:
        if isinstance(trace.names, Spelled):
            texts |= trace.names.known
    return Spelled(texts)


def predict(
    trace: Trace, text: int, token: int, names: Names, *, top: int = 5, occurrence: str | None = None
) -> Prediction:
    """Return the prediction at or after one token of a trace with logits."""
    assert trace.logits is not None
    likeliest = candidates(trace.logits[token], trace.labels.__getitem__ if trace.labels else names, top)
    after = None if trace.labels else is_causal(trace)
    return Prediction(text, token, trace.tokens[token].text, after, occurrence, likeliest)


@dataclass(frozen=True)
class LensLayer:
    """The prediction read from one hidden state, the most likely tokens first.

    state: 0 is the input of layer 0, n + 1 the output of layer n. rank (from 1), probability: of the token that the
    whole model finds most likely, or that it wrote.
    """

    state: int
    candidates: list[Candidate]
    rank: int
    probability: float


@dataclass(frozen=True)
class LogitLens(Tabular):
    """The logit lens at one token. at, after, occurrence: as in `Prediction`.

    final: the whole model's likeliest token. difference: the largest between the model's logits and those that the lens
    reads from the last state.
    """

    text: int
    token: int
    at: str
    after: bool
    occurrence: str | None
    final: Candidate
    layers: list[LensLayer]
    difference: float

    def rows(self) -> list[Row]:
        """Return one row per state and candidate: the candidate's rank from 1 ("place"), id, text and probability."""
        common: Row = {"occurrence": self.occurrence, "token": self.token, "at": self.at}
        return [
            common | {"state": layer.state, "place": rank}
            | {"id": candidate.id, "candidate": candidate.text, "probability": candidate.probability}
            for layer in self.layers
            for rank, candidate in enumerate(layer.candidates, 1)
        ]  # fmt: skip


def logit_lens(
    model: "Model | Readout",
    trace: Trace,
    place: Place,
    top: int = 5,
    *,
    names: Names | None = None,
    text: int = 0,
    occurrence: str | None = None,
) -> LogitLens:
    """Read the logits of each hidden state at a token, or at a word's last token.

    model: the model of the trace. For an encoder-decoder's decoder, pass a `Readout` with the source.
    """
    readout = model if isinstance(model, Readout) else Readout(model, trace)
    names = names_of(trace) if names is None else names
    token = tokens_of(trace, place)[-1]
    final = candidates(readout.logits[token], names, 1)[0]
    layers, difference = lens_layers(readout, trace, token, readout.logits[token], final.id, names, top)
    return LogitLens(text, token, trace.tokens[token].text, is_causal(trace), occurrence, final, layers, difference)


def lens_layers(
    readout: Readout, trace: Trace, row: int, model_logits: Float[Tensor, " V"], chosen: int, names: Names, top: int = 3
) -> tuple[list[LensLayer], float]:
    """Return each hidden state's prediction at a row, and how far the logits of the last state are from the model's.

    readout: the model's, from any trace. model_logits: the model's. chosen: the id whose rank and probability to keep.
    """
    states = torch.stack([state[row] for state in trace.hidden_states])
    # The last state is read both first and last, to detect final layers that depend on the position.
    logits = readout(torch.cat([states[-1:], states]))
    difference = readout.check(logits[[0, -1]], model_logits)
    layers = [
        LensLayer(n, candidates(logits[n + 1], names, top), 1 + int((chances > chances[chosen]).sum()),
              float(chances[chosen]))
        for n, chances in enumerate(logits[1:].double().softmax(-1))
    ]  # fmt: skip
    return layers, difference
