"""Name an outcome of a run: one number of a trace, that patches and other changes of the run are judged by.

    logit_difference(model, "Paris", "Rome")     of the next token after the text, or of a place in it
    probability(model, "Paris")                  the same token's share
    cosine("bank", reference)                    of a word's contextual embedding to a vector

Any function of a trace is one, too: `Outcome("length of bank", lambda trace: trace["bank"].norm())`. One that gives a
tensor can be differentiated as well, by its contextual embeddings and logits: see `gradients`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.places import Place, tokens_of
from regard.models.model import Model
from regard.text.words import Word
from regard.trace.trace import PairTrace, Trace

AnyTrace = Trace | PairTrace


@dataclass(frozen=True)
class Outcome:
    """One number of a trace. name: what it is, for tables and pictures. number: computes it, best as a tensor."""

    name: str
    number: Callable[[AnyTrace], Float[Tensor, ""] | float]

    def of(self, trace: AnyTrace) -> float:
        """Compute the number of a trace."""
        found = self.number(trace)
        return float(found.detach() if isinstance(found, Tensor) else found)


def logit_difference(model: Model, token: str, other: str, *, at: Place | None = None) -> Outcome:
    """Make the outcome "by how much the logit of one token is above that of another".

    at: after which word or token of the text (of its target, for an encoder-decoder); None for the last one. BERT's
    language head says what stands at a place, not after it.

    Raises:
        RegardError: what is given is not one token of the vocabulary.
    """
    first, second = token_id(model, token), token_id(model, other)

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        logits = _logits(trace, at)
        return logits[first] - logits[second]

    return Outcome(f"logit of {token!r} less that of {other!r}{_after(at)}", number)


def probability(model: Model, token: str, *, at: Place | None = None) -> Outcome:
    """Make the outcome "the probability of a token". at: as in `logit_difference`.

    Raises:
        RegardError: what is given is not one token of the vocabulary.
    """
    place = token_id(model, token)
    return Outcome(
        f"probability of {token!r}{_after(at)}", lambda trace: _logits(trace, at).double().softmax(-1)[place]
    )


def cosine(place: Place, reference: Float[Tensor, " M"], name: str = "the reference") -> Outcome:
    """Make the outcome "the cosine of a word's contextual embedding and a vector", such as another trace's `["bank"]`.

    place: a word that occurs once, an occurrence, or the number of a token. name: of the vector.
    """
    target = reference.double()

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        side = trace.sides[-1]
        own = side.contextual[tokens_of(side, place)].double().mean(0)
        if own.shape != target.shape:
            raise RegardError(f"cosine: given a vector of {len(target)} components, embeddings have {len(own)}")
        return (own @ target.to(own.device)) / (own.norm() * target.norm().to(own.device))

    return Outcome(f"cosine of {_said(place)} and {name}", number)


def token_id(model: Model, token: str) -> int:
    """Look up the id of a token in a model's vocabulary: as it is, or with a blank before it.

    Raises:
        RegardError: the model has no tokenizer, or this is no token, or several.
    """
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise RegardError(f"outcome: {model.name} has no tokenizer, so {token!r} is no token of it")
    unknown = getattr(tokenizer, "unk_token_id", None)
    found: list[int] = []
    for spelled in (f" {token}", token):  # most texts go on with a word after a blank
        found = tokenizer(spelled, add_special_tokens=False)["input_ids"]
        if len(found) == 1 and found[0] != unknown:
            return int(found[0])
    pieces = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(found))) or "nothing"
    raise RegardError(f"outcome: {token!r} is no single token of {model.name}: its tokenizer makes {pieces} of it")


def _logits(trace: AnyTrace, at: Place | None) -> Float[Tensor, " V"]:
    side = trace.sides[-1]
    if side.logits is None:
        raise RegardError(f"outcome: {side.status.model} has no language head: give a cosine, or a function of a trace")
    return side.logits[-1 if at is None else tokens_of(side, at)[-1]]


def _after(at: Place | None) -> str:
    return "" if at is None else f" at {_said(at)}"


def _said(place: Place) -> str:
    if isinstance(place, int):
        return f"token {place}"
    return repr(place.text if isinstance(place, Word) else place)
