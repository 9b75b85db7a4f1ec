"""The logit lens: what the model would predict if the layers that remain did nothing.

    p_l = softmax(W_U · norm(h_l)),  h_l the hidden state after layer l, norm and W_U the model's final ones

(nostalgebraist 2020, "interpreting GPT: the logit lens"). Layers were not trained to be read
like this: early ones often are not legible.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from regard.explain.frames import Row, Table
from regard.explain.logits.predictions import Candidate, Names, candidates, names_of
from regard.explain.places import Place, tokens_of
from regard.models.readout import Readout
from regard.trace.trace import Trace, is_causal

if TYPE_CHECKING:
    from regard.models.model import Model


@dataclass(frozen=True)
class Layer:
    """What one state would say: the likeliest tokens first.

    state: 0 enters layer 0, n + 1 leaves layer n. rank (from 1) and probability: those of the token that the whole
    model finds likeliest.
    """

    state: int
    candidates: list[Candidate]
    rank: int
    probability: float


@dataclass(frozen=True)
class LogitLens(Table):
    """The lens at one token. at, after, occurrence: as in a prediction. final: what the whole model finds likeliest.

    difference: the largest one between the logits that the lens reads from the last state and the model's own.
    """

    text: int
    token: int
    at: str
    after: bool
    occurrence: str | None
    final: Candidate
    layers: list[Layer]
    difference: float

    def rows(self) -> list[Row]:
        """One row a state and candidate: occurrence, token, at, state, place (from 1), id, candidate, probability."""
        return [
            {
                "occurrence": self.occurrence,
                "token": self.token,
                "at": self.at,
                "state": layer.state,
                "place": place,
                "id": each.id,
                "candidate": each.text,
                "probability": each.probability,
            }
            for layer in self.layers
            for place, each in enumerate(layer.candidates, 1)
        ]


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
    """Read the logits of each hidden state of a token, of a word its last token.

    model: the model that made the trace. For a decoder of an encoder-decoder, pass a `Readout` with its source.
    """
    readout = model if isinstance(model, Readout) else Readout(model, trace)
    names = names_of(trace) if names is None else names
    token = tokens_of(trace, place)[-1]
    states = torch.stack([state[token] for state in trace.hidden_states])
    # The last state stands at both ends: were there more than norm and head, places would not give the same.
    logits = readout(torch.cat([states[-1:], states]))
    ends = logits[[0, -1]]
    readout.check(ends, [token, token])
    chosen = int(readout.logits[token].argmax())
    chances = logits[1:].double().softmax(-1)
    layers = [
        Layer(
            state=n,
            candidates=candidates(logits[n + 1], names, top),
            rank=1 + int((row > row[chosen]).sum()),
            probability=float(row[chosen]),
        )
        for n, row in enumerate(chances)
    ]
    difference = float((ends - readout.logits[token]).abs().max())
    final = candidates(readout.logits[token], names, 1)[0]
    return LogitLens(text, token, trace.tokens[token].text, is_causal(trace), occurrence, final, layers, difference)
