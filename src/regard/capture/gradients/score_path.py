"""Split the query and the key of an attention score by the components that wrote to the residual stream.

With fixed norm statistics, both are linear functions of these outputs (`linear_pass`). The gradient of one of their D
dimensions times an output is that output's part of the dimension. This takes one pass up to the attention call, and
2 · D backward passes over the linear operations.

`outcome_path` splits a logit, a logit difference or a cosine in the same way, with a pass up to the output.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.recording import hooked_calls
from regard.capture.gradients.linear_pass import Kind, Leaf, LinearPass, ReachedError
from regard.capture.hooks import record_last_hidden_states, record_layers
from regard.capture.inputs import logits_in
from regard.capture.interventions.names import CallId, CallNumbering
from regard.capture.options import CaptureOptions, masks_as_needed
from regard.capture.session import Session
from regard.capture.state import Capture
from regard.errors import RegardError
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import Encoded

Side = Literal["encoder", "decoder"]
AT_ONCE, NUMBERS = 16, 1 << 26  # largest number of dimensions differentiated together, and of gradient values


@dataclass(frozen=True)
class Writer:
    """The writer of a component: an embedding, a head's attention to a source token, a feed-forward layer, or biases.

    layer: None before the first layer and, for "final bias", after the last. "feed-forward" is all that a layer adds
    except attention and biases. side: for an encoder-decoder, the stack to which the component was added first, None if
    unknown. cross: whether the head attends to the encoder's tokens.
    """

    kind: Kind
    layer: int | None = None
    head: int | None = None
    source: int | None = None
    side: Side | None = None
    cross: bool = False


@dataclass(frozen=True, eq=False)
class SideParts:
    """The components of a query or a key in float64. They sum to `whole`, the model's own vector.

    tokens: the tokens whose mean it is.
    """

    writers: tuple[Writer, ...]
    vectors: Float[Tensor, "P D"]
    whole: Float[Tensor, " D"]
    tokens: tuple[int, ...]


def score_path(
    session: Session,
    source: Encoded,
    target: Encoded | None,
    call: CallId,
    head: int,
    query: Sequence[int],
    keys: Sequence[Sequence[int]],
) -> tuple[SideParts, list[SideParts]]:
    """Run a text up to an attention call and split a head's mean query, and mean keys, over sets of tokens."""
    name = f"score_sources of layer {call.layer} of {session.name}"
    if session.reports_weights:
        raise RegardError(f"{name}: its attention does not go through regard: its queries and keys are not seen")
    done, _, _ = run_linearly(session, source, target, call)
    if done.query is None or done.key is None:
        raise RegardError(f"{name}: the attention call was not seen")
    if done.spoiled is not None:
        raise RegardError(f"{name}: {done.spoiled!r} writes into the residual stream, so no exact split is known")
    sides: tuple[Side | None, ...] = ("encoder", "decoder") if session.pairs else (None,)
    group = head * done.key.shape[1] // done.query.shape[1]
    requests = [("query", done.query, head, query), *(("key", done.key, group, key) for key in keys)]
    gradients_of = [
        split_rows(done, tensor[0, n], done.reason(tensor), tuple(tokens), sides, f"{name}: the {role}")
        for role, tensor, n, tokens in requests
    ]
    return gradients_of[0], gradients_of[1:]


@masks_as_needed
def run_linearly(
    session: Session,
    source: Encoded,
    target: Encoded | None,
    call: CallId | None,
    logits_of: Sequence[int] | None = None,
    *,
    written_masks: bool = False,
) -> tuple[LinearPass, Tensor | None, dict[str, Tensor]]:
    """Run a pass up to a call, or to its end for None. Returns the pass, its logits and its last hidden states."""
    keep = CaptureOptions(
        logits=call is None, attention_outputs=False, embeddings=False, compare=False, written_masks=written_masks,
        last_row=call is not None and "logits_to_keep" in session.takes,
    )  # fmt: skip
    output, last = None, dict[str, Tensor]()
    with session.alone():
        capture = Capture(session.index, keep)
        inputs = session.inputs([source], None if target is None else [target], keep)
        if logits_of is not None and "logits_to_keep" in session.takes:
            inputs["logits_to_keep"] = torch.tensor(logits_of, device=session.model.device)
        ids = [inputs[name].flatten(0, -2) for name in ("input_ids", "decoder_input_ids") if name in inputs]
        watched = LinearPass(ids, call, CallNumbering(session.model, capture, pairs=session.pairs), capture)
        watched.holds_activations = bool(session.labels)
        with (
            suppress(ReachedError),  # the call was reached
            quiet(),
            torch.no_grad(),
            session.capture_attention(capture),
            record_layers(session.model, capture),
            record_last_hidden_states(session.model, head_input=not keep.last_row) as last,
            hooked_calls(watched),
            watched,
        ):
            output = session.model(**inputs)
    return watched, logits_in(output, session.labels), last


def split_rows(
    done: LinearPass,
    vectors: Float[Tensor, "L D"],
    reason: str | None,
    tokens: tuple[int, ...],
    sides: tuple[Side | None, ...],
    label: str,
    rows: Sequence[int] | None = None,
) -> SideParts:
    """Split the mean of some tokens' vectors into components by their writers."""
    if not done.is_linear(vectors):
        raise RegardError(f"{label} isn't a linear function of the residual stream: {reason!r} is in between")
    mean = vectors[list(tokens if rows is None else rows)].mean(0)
    tensors = [leaf.tensor for leaf in done.leaves]
    gathered: list[list[Tensor]] = [[] for _ in tensors]  # for each leaf, by dimension
    at_once = max(1, min(AT_ONCE, NUMBERS // sum(tensor.numel() for tensor in tensors)))
    for directions in torch.eye(len(mean), dtype=mean.dtype, device=mean.device).split(at_once):
        for leaf, grad, grads in zip(
            done.leaves, _gradients_of_components(mean, tensors, directions), gathered, strict=True
        ):
            if grad is not None:
                grads.append(_kept_leaf_gradients(leaf, grad, tokens, label))
    embedded = [grads for leaf, grads in zip(done.leaves, gathered, strict=True) if leaf.kind == "token" and grads]
    if not any(bool(torch.cat(grads).any()) for grads in embedded):
        raise RegardError(f"{label} isn't a linear function of the token embeddings: a lower layer doesn't add to them")
    places: dict[Writer, int] = {}
    order: list[int] = []  # the writer number of each row
    blocks: list[Tensor] = []
    for leaf, grads in zip(done.leaves, gathered, strict=True):
        if grads:
            writers, parts = _parts_of_leaf(leaf, torch.cat(grads), sides[leaf.sequence], tokens)
            order += [places.setdefault(writer, len(places)) for writer in writers]
            blocks.append(parts)
    sums = torch.zeros(len(places), len(mean), dtype=torch.float64)
    sums.index_add_(0, torch.tensor(order), torch.cat(blocks))
    return SideParts(tuple(places), sums, mean.detach().double().cpu(), tokens)


def _gradients_of_components(
    vector: Float[Tensor, " D"], tensors: list[Tensor], directions: Float[Tensor, "n D"]
) -> list[Tensor | None]:
    """Compute the gradients of n dimensions by each tensor, (n, ...), or None for independent tensors."""
    options = {"retain_graph": True, "allow_unused": True}
    if len(directions) == 1:
        return [None if g is None else g[None] for g in torch.autograd.grad(vector, tensors, directions[0], **options)]
    try:
        return list(torch.autograd.grad(vector, tensors, directions, is_grads_batched=True, **options))
    except RuntimeError:  # an operation doesn't support batched gradients
        grads = [torch.autograd.grad(vector, tensors, direction, **options) for direction in directions]
        return [None if parts[0] is None else torch.stack(parts) for parts in zip(*grads, strict=True)]


def _kept_leaf_gradients(
    leaf: Leaf, grad: Float[Tensor, "n ..."], tokens: tuple[int, ...], label: str
) -> Float[Tensor, "n ..."]:
    """Reduce a leaf's gradients: for attention to the rows of the tokens, (n, H, r, E), else to leaf · gradient."""
    if leaf.kind != "attention":
        return (grad.double() * leaf.tensor.detach()).reshape(len(grad), -1).sum(1).cpu()
    of_tokens = grad[:, 0, :, list(tokens)].double()
    if not torch.allclose(of_tokens.abs().sum(), grad.double().abs().sum()):
        raise RegardError(f"{label} reads other tokens without attention, so no exact split is known")
    return of_tokens.cpu()


def _parts_of_leaf(
    leaf: Leaf, gradients: Tensor, side: Side | None, tokens: tuple[int, ...]
) -> tuple[list[Writer], Float[Tensor, "P D"]]:
    """Split a leaf into its nonzero components. Attention is split by head and source token."""
    if leaf.weights is None or leaf.value is None:
        keep = bool(gradients.any())
        return [Writer(leaf.kind, leaf.layer, side=side)] * keep, gradients[None].expand(int(keep), -1)
    weights = leaf.weights[0, :, list(tokens)].double().cpu()  # (H, r, S)
    value = leaf.value[0].double().cpu()
    value = value.repeat_interleave(len(weights) // len(value), 0)  # (H, S, E)
    parts = torch.einsum("dhre,hse,hrs->hsd", gradients, value, weights)
    heads, sources = parts.any(-1).nonzero(as_tuple=True)
    pairs = zip(heads.tolist(), sources.tolist(), strict=True)
    return [Writer(leaf.kind, leaf.layer, head, n, side, leaf.cross) for head, n in pairs], parts[heads, sources]


@dataclass(frozen=True, eq=False)
class AttributionTarget:
    """The outcome: logits[token], logits[token] - logits[against], or the cosine to a direction if token is None."""

    token: int | None = None
    against: int | None = None
    direction: Float[Tensor, " M"] | None = None


def outcome_path(
    session: Session, source: Encoded, target: Encoded | None, outcome: AttributionTarget, tokens: Sequence[int]
) -> SideParts:
    """Run a text and split the mean outcome of some tokens by writer, into vectors with one number.

    For a cosine, the length of the mean state is held fixed, like norm statistics.
    """
    name = f"attribution in {session.name}"
    if session.reports_weights:
        raise RegardError(f"{name}: its attention does not go through regard, so no exact split is known")
    rows, length = list(tokens), len((source if target is None else target).tokens)
    logits_of = rows if outcome.token is not None else rows[-1:]  # all rows would be (L, V)
    done, logits, last = run_linearly(session, source, target, None, logits_of)
    states = last.get("last_hidden_state")
    if outcome.token is None and (states is None or states.shape[1] != length):
        done, logits, last = run_linearly(session, source, target, None)  # as input of the head, for all tokens
    if done.spoiled is not None:
        raise RegardError(f"{name}: {done.spoiled!r} writes into the residual stream, so no exact split is known")
    if outcome.token is not None:
        ends = logits
        if ends is not None and ends.ndim == 2:  # one row for the whole text, to which all tokens may contribute
            rows, ends = [0], ends[:, None]
        elif ends is not None and ends.shape[1] == len(rows):
            rows = list(range(len(rows)))
        if ends is None:
            raise RegardError(f"{name}: it has no language head, so no logits: pass a direction, toward=")
    else:
        ends = last.get("last_hidden_state")
        if ends is None:
            raise RegardError(f"{name}: its last hidden state was not seen")
    with torch.enable_grad():
        values = _outcome_at_rows(ends[0], outcome, rows)[:, None]
    sides: tuple[Side | None, ...] = ("encoder", "decoder") if session.pairs else (None,)
    label = f"{name}: the {'logit' if outcome.token is not None else 'last hidden state'}"
    reason = done.reason(ends if outcome.token is None or logits is None else logits)
    return split_rows(done, values, reason, tuple(tokens), sides, label, rows)


def _outcome_at_rows(ends: Float[Tensor, "L K"], outcome: AttributionTarget, rows: list[int]) -> Float[Tensor, " L"]:
    """Compute the outcome at each row. For a cosine, this is the row's part of the cosine of the rows' mean."""
    if outcome.token is not None:
        return ends[:, outcome.token] - (0 if outcome.against is None else ends[:, outcome.against])
    assert outcome.direction is not None
    direction = outcome.direction.to(ends)
    length = ends.detach()[rows].mean(0).norm() * direction.norm()
    return ends @ (direction / length)
