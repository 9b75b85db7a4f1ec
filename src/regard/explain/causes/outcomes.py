"""Define outcomes of a run: numbers computed from a trace, to measure the effect of patches and other changes.

    logit(model, "Paris")                        of the next token after the text, or at a position in it
    logit_difference(model, "Paris", "Rome")     the same, minus another token's logit
    probability(model, "Paris")                  the same token's probability
    logit(model, "POSITIVE")                     of a classifier's label; of a token classifier at a word, at="Paris"
    cosine("bank", reference)                    of a word's last hidden state and a vector

Any function of a trace can be an outcome: `Outcome("length of bank", lambda trace: trace["bank"].norm())`. If it
returns a tensor, `gradients` can differentiate it with respect to the trace's contextual embeddings and logits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.capture.inputs import probabilities
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
    """A number computed from a trace. name: for tables and plots. number: the function, preferably returning a tensor.

    logits: whether it needs the logits. Runs without logits take less time.
    """

    name: str
    number: Callable[[AnyTrace], Float[Tensor, ""] | float]
    logits: bool = True

    def of(self, trace: AnyTrace) -> float:
        """Compute this outcome, such as a logit or a cosine, for a trace."""
        value = self.number(trace)
        return float(value.detach() if isinstance(value, Tensor) else value)


def logit(model: Model, token: str | int, *, at: Place | None = None) -> Outcome:
    """Return the outcome "logit of a token". token: its text or id. at: as in `logit_difference`."""
    index = _outcome_token_id(model, token)
    return Outcome(f"logit of {_quoted(token)}{_at_place(at)}", lambda trace: _outcome_logits(trace, at, index)[index])


def logit_difference(model: Model, token: str | int, other: str | int, *, at: Place | None = None) -> Outcome:
    """Return the outcome "logit of one token minus logit of another". at: the position. Default: the last token."""
    first, second = _outcome_token_id(model, token), _outcome_token_id(model, other)

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        logits = _outcome_logits(trace, at, first, second)
        return logits[first] - logits[second]

    return Outcome(f"logit difference {_quoted(token)} − {_quoted(other)}{_at_place(at)}", number)


def probability(model: Model, token: str | int, *, at: Place | None = None) -> Outcome:
    """Return the outcome "probability of a token". at: as in `logit_difference`."""
    index, name = _outcome_token_id(model, token), f"probability of {_quoted(token)}{_at_place(at)}"

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        chances = probabilities(_outcome_logits(trace, at, index).double(), model.labels, model._session.original)
        if chances is None:
            raise RegardError(f"outcome: {model.name} has no label probabilities: use the logit")
        return chances[index]

    return Outcome(name, number)


def cosine(place: Place, reference: Float[Tensor, " M"], name: str = "the reference") -> Outcome:
    """Return the outcome "cosine of a word's last hidden state and a vector", such as another trace's `["bank"]`.

    place: a word that occurs once, an occurrence, or a token's number. name: of the vector.
    """
    target = reference.double()

    def number(trace: AnyTrace) -> Float[Tensor, ""]:
        side = trace.sides[-1]
        vector = side.last_hidden_state[tokens_of(side, place)].double().mean(0)
        if vector.shape != target.shape:
            raise RegardError(f"cosine: got a vector of {len(target)} components, but embeddings have {len(vector)}")
        return (vector @ target.to(vector.device)) / (vector.norm() * target.norm().to(vector.device))

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
    """Return the outcome that a command or request names, for a next token (to, against) or a word in a trace.

    alone: creates the outcome of a single token. like: the word to compare with. Default: the word itself.

    Raises:
        RegardError: neither a token nor a word is named.
    """
    if to is not None:
        options: dict[str, Any] = {} if at is None else {"at": at}
        return alone(model, to, **options) if against is None else logit_difference(model, to, against, **options)
    if word is None:
        raise RegardError("outcome: pass to (a next token or label) or word (a word of the text)")
    reference = trace.sides[-1][word if like is None else like]
    return cosine(word, reference, "its vector in the clean text" if like is None else quoted(like))


def number_of(outcome: Outcome, trace: AnyTrace) -> Float[Tensor, ""]:
    """Compute an outcome of a trace as a tensor that can be differentiated."""
    if not isinstance(outcome, Outcome):
        kind = type(outcome).__name__
        raise RegardError(f"outcome: got {kind}, expected an Outcome, such as outcomes.probability(...)")
    value = outcome.number(trace)
    if not isinstance(value, Tensor) or value.ndim or not value.requires_grad:
        raise RegardError(
            f"outcome {outcome.name!r} returns a plain number: gradients need a tensor computed from the trace's "
            "contextual embeddings or logits"
        )
    return value


def _outcome_token_id(model: Model, token: str | int) -> int:
    return class_or_token_id(model.labels, model._tokenizer, token, f"outcome of {model.name}")


def _outcome_logits(trace: AnyTrace, at: Place | None, *ids: int) -> Float[Tensor, " V"]:
    """Return the logits at a position, after checking that they include these token ids."""
    logits = logits_at(trace, at)
    wrong = [number for number in ids if not 0 <= number < len(logits)]
    if wrong:
        raise RegardError(f"outcome: token id {wrong[0]} is out of range: there are ids 0 to {len(logits) - 1}")
    return logits


def logits_at(trace: AnyTrace, at: Place | None) -> Float[Tensor, " V"]:
    """Return the logits at a position (None: the last token). A classifier of whole texts has no positions."""
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


def _quoted(token: str | int) -> str:
    """Format a token for an outcome's name: its quoted text, or its id."""
    return quoted(token) if isinstance(token, str) else str(token)


def _at_place(at: Place | None) -> str:
    return "" if at is None else f" at {written((at,))}"
