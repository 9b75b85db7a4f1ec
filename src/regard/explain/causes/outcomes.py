"""Name an outcome of a run: one number of a trace, that patches and other changes of the run are judged by.

    logit(model, "Paris")                        of the next token after the text, or of a place in it
    logit_difference(model, "Paris", "Rome")     the same, less another token's
    probability(model, "Paris")                  the same token's share
    logit(model, "POSITIVE")                     of a classifier's label; of a token classifier at a word, at="Paris"
    cosine("bank", reference)                    of a word's contextual embedding to a vector

Any function of a trace is one, too: `Outcome("length of bank", lambda trace: trace["bank"].norm())`. One that gives a
tensor can be differentiated as well, by its contextual embeddings and logits: see `gradients`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.capture.classes import probabilities
from regard.capture.interventions.names import written
from regard.errors import RegardError
from regard.explain.wording import Place, tokens_of
from regard.models.inputs import class_or_token_id
from regard.models.model import Model
from regard.text.quoting import quoted
from regard.trace.trace import PairTrace, Trace

AnyTrace = Trace | PairTrace


@dataclass(frozen=True)
class Outcome:
    """One number of a trace. name: what it is, for tables and pictures. number: computes it, best as a tensor.

    logits: whether it needs them; runs that compute none take less time.
    """

    name: str
    number: Callable[[AnyTrace], Float[Tensor, ""] | float]
    logits: bool = True

    def of(self, trace: AnyTrace) -> float:
        """Compute the number of a trace."""
        found = self.number(trace)
        return float(found.detach() if isinstance(found, Tensor) else found)


def logit(model: Model, token: str | int, *, at: Place | None = None) -> Outcome:
    """Make the outcome "the logit of a token", given by its text or its id. at: as in `logit_difference`."""
    place = _outcome_token_id(model, token)
    return Outcome(f"logit of {_token(token)}{_after(at)}", lambda trace: _outcome_logits(trace, at, place)[place])


def logit_difference(model: Model, token: str | int, other: str | int, *, at: Place | None = None) -> Outcome:
    """Make the outcome "by how much the logit of one token is above that of another"."""
    first, second = _outcome_token_id(model, token), _outcome_token_id(model, other)

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        logits = _outcome_logits(trace, at, first, second)
        return logits[first] - logits[second]

    return Outcome(f"logit difference {_token(token)} − {_token(other)}{_after(at)}", number)


def probability(model: Model, token: str | int, *, at: Place | None = None) -> Outcome:
    """Make the outcome "the probability of a token". at: as in `logit_difference`."""
    place, name = _outcome_token_id(model, token), f"probability of {_token(token)}{_after(at)}"

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        found = probabilities(_outcome_logits(trace, at, place).double(), model.labels, model._session.original)
        if found is None:
            raise RegardError(f"outcome: {model.name} has no label probabilities: use the logit")
        return found[place]

    return Outcome(name, number)


def cosine(place: Place, reference: Float[Tensor, " M"], name: str = "the reference") -> Outcome:
    """Make the outcome "the cosine of a word's contextual embedding and a vector", such as another trace's `["bank"]`.

    place: a word that occurs once, an occurrence, or the number of a token. name: of the vector.
    """
    target = reference.double()

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        side = trace.sides[-1]
        own = side.last_hidden_state[tokens_of(side, place)].double().mean(0)
        if own.shape != target.shape:
            raise RegardError(f"cosine: got a vector of {len(target)} components, but embeddings have {len(own)}")
        return (own @ target.to(own.device)) / (own.norm() * target.norm().to(own.device))

    return Outcome(f"cosine of {written((place,))} and {name}", number, logits=False)


def chosen_outcome(
    model: Model,
    trace: AnyTrace,
    alone: Callable[..., Outcome],
    *,
    to: str | None,
    against: str | None,
    word: str | None,
    like: str | None = None,
    at: int | None = None,
) -> Outcome:
    """Make the outcome that a command or request names: of a next token (to, against), or of a word in a trace.

    alone: makes that of a single token. like: the word that it is compared with; by default itself, in this trace.

    Raises:
        RegardError: neither a token nor a word.
    """
    if to is not None:
        place: dict[str, Any] = {} if at is None else {"at": at}
        return alone(model, to, **place) if against is None else logit_difference(model, to, against, **place)
    if word is None:
        raise RegardError("outcome: pass to (a next token or label) or word (a word of the text)")
    reference = trace.sides[-1][word if like is None else like]
    return cosine(word, reference, "its vector in the clean text" if like is None else quoted(like))


def number_of(outcome: Outcome, trace: AnyTrace) -> Float[Tensor, ""]:
    """Compute the outcome as a tensor that can be differentiated."""
    if not isinstance(outcome, Outcome):
        given = type(outcome).__name__
        raise RegardError(f"outcome: got {given}, expected an Outcome, such as outcomes.probability(...)")
    found = outcome.number(trace)
    if not isinstance(found, Tensor) or found.ndim or not found.requires_grad:
        raise RegardError(
            f"outcome {outcome.name!r} returns a plain number: gradients need a tensor computed from the trace's "
            "contextual embeddings or logits"
        )
    return found


def _outcome_token_id(model: Model, token: str | int) -> int:
    return class_or_token_id(model.labels, model._tokenizer, token, f"outcome of {model.name}")


def _outcome_logits(trace: AnyTrace, at: Place | None, *ids: int) -> Float[Tensor, " V"]:
    """The logits at a place, which have to hold these ids."""
    logits = logits_at(trace, at)
    wrong = [number for number in ids if not 0 <= number < len(logits)]
    if wrong:
        raise RegardError(f"outcome: token id {wrong[0]} is out of range: there are ids 0 to {len(logits) - 1}")
    return logits


def logits_at(trace: AnyTrace, at: Place | None) -> Float[Tensor, " V"]:
    """Return the logits at a place, None for the last token; those of a classifier of whole texts, which have none."""
    side = trace.sides[-1]
    if side.logits is None:
        raise RegardError(f"outcome: {side.status.model} has no language head: pass a cosine, or a function of a trace")
    if side.logits.ndim == 1:
        if at is not None:
            where = written((at,))
            raise RegardError(f"outcome: {side.status.model} labels the whole text: leave out the position {where}")
        return side.logits
    if side.labels and at is None:
        raise RegardError(f"outcome: {side.status.model} labels each token: choose a word")
    return side.logits[-1 if at is None else tokens_of(side, at)[0 if side.labels else -1]]


def _token(token: str | int) -> str:
    """A token of the vocabulary as an outcome's name says it: its text, or its id."""
    return quoted(token) if isinstance(token, str) else str(token)


def _after(at: Place | None) -> str:
    return "" if at is None else f" at {written((at,))}"
