"""Compute logits from any hidden states with the model's own final layers (for the logit lens).

A final norm and a head follow the last layer. Some architectures add a transform, a scale, a bias or a soft cap. regard
runs all of them without knowing them: in a pass over as many tokens as there are states, it replaces the last layer's
output by the states.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.capture.gradients.gradient_pass import Exchange, GradientPass, gradient_pass
from regard.capture.hooks import first_hidden_states
from regard.errors import RegardError
from regard.model_files.suppress_warnings import quiet
from regard.models.inputs import model_inputs_of_trace
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model

TOLERANCE = 1e-4  # largest difference of logits, relative to the largest logit or, if it is below 1, to 1
ROWS = 512  # states per pass, or fewer if the model's limit is smaller
SAME = 1e-3  # largest difference between the last hidden state and the trace's, relative to its norm


class Readout:
    """A function that computes the logits of hidden states with the model's final layers."""

    def __init__(self, model: Any, trace: Trace, source: Trace | None = None) -> None:
        """Find the model's last layer, with one pass over the tokens of a trace.

        model: from `regard.load`. source: the encoder's trace, if `trace` is a decoder's.
        """
        self.model, self.name, self._own = model, model.name, model._session.model
        self._ids = [token.id for token in trace.tokens]
        self._source = None if source is None else [token.id for token in source.tokens]
        if model.pairs != (source is not None):
            kind = "an encoder-decoder" if model.pairs else "no encoder-decoder"
            raise RegardError(f"next: {self.name} is {kind}: the trace is another model's")
        size = model._session.original.get_input_embeddings().num_embeddings
        if max(self._ids) >= size:
            raise RegardError(f"next: the trace has token ids that {self.name} doesn't know: it is another model's")
        self._with_segments = False  # whether the trace was made with token types
        path = self._find_layers(trace)
        if path is None and "token_type_ids" in model._session.takes:
            self._with_segments = True
            path = self._find_layers(trace)
        if path is None:
            raise RegardError(f"next: no layers of {self.name} output the states of this trace: it is another model's")
        self._layers: list[nn.Module] = list(self._own.get_submodule(path))
        self._like: dict[nn.Module, Tensor] = {}  # an empty tensor for each layer that outputs a single tensor

    def _find_layers(self, trace: Trace) -> str | None:
        """Return the path of the list of layers that outputs the trace's last state, or None. Sets `logits`."""
        with self.model._session.alone():
            lists = {path: m for path, m in self._own.named_modules() if isinstance(m, nn.ModuleList)}
            with _record_last_outputs(lists) as left:
                self.logits = self._pass_logits(self._ids)  # (L, V)
        expected = trace.hidden_states[-1]
        near = 1e-4 * max(1.0, float(expected.abs().max()))
        stacks = [
            path
            for path, state in left.items()
            if state.shape == (1, *expected.shape) and float((state[0] - expected.to(state.device)).abs().max()) <= near
        ]
        return stacks[-1] if stacks else None

    def __call__(self, vectors: Float[Tensor, "K M"]) -> Float[Tensor, "K V"]:
        """Compute the logits of each state with the model's final layers."""
        batch_size = min(ROWS, self.model.limit or ROWS)
        return torch.cat([self._batch_logits(part) for part in vectors.split(batch_size)])

    def check(self, logits: Float[Tensor, "K V"], expected: Float[Tensor, " V"]) -> float:
        """Return the largest difference between logits and the model's own. Raise RegardError if it is too large."""
        expected = expected.to(logits)
        difference, near = float((logits - expected).abs().max()), TOLERANCE * max(1.0, float(expected.abs().max()))
        if not difference <= near:
            raise RegardError(
                f"next: read from the last state, the logits of {self.name} differ from its own by {difference:.1e}, "
                f"allowed is {near:.0e}: something other than a norm and a head follows its layers"
            )
        return difference

    def _batch_logits(self, vectors: Float[Tensor, "K M"]) -> Float[Tensor, "K V"]:
        """Compute the logits of a batch of states in one pass."""
        filler = [self._ids[-1]] * len(vectors)  # any ids do: their outputs are replaced
        with self.model._session.alone(), _layers_replaced_by_state(self._layers, vectors[None], self._like):
            return self._pass_logits(filler)

    def _pass_logits(self, ids: list[int]) -> Float[Tensor, "L V"]:
        """Run one pass over token ids and return its logits. For an encoder-decoder, both are the target's."""
        model, device = self._own, self._own.device
        rows = {"input_ids": ids} if self._source is None else {"input_ids": self._source, "decoder_input_ids": ids}
        if self._with_segments:
            rows["token_type_ids"] = [0] * len(rows["input_ids"])
        inputs: dict[str, Any] = {name: torch.tensor([row], device=device) for name, row in rows.items()}
        with quiet(), torch.no_grad():
            output = model(**inputs)
        logits = getattr(output, "logits", None)
        if not isinstance(logits, Tensor) or logits.ndim != 3 or logits.shape[1] != len(ids):
            raise RegardError(f"logit lens: {self.name} has no language-model head. Use a causal or masked LM")
        return logits[0]


@contextmanager
def _record_last_outputs(lists: dict[str, nn.ModuleList]) -> Iterator[dict[str, Tensor]]:
    """During a pass in the block, record the output of the last layer of each list, by the list's path."""
    left: dict[str, Tensor] = {}

    def keep(path: str, _module: nn.Module, _args: Any, output: Any) -> None:
        if (state := first_hidden_states(output)) is not None:
            left[path] = state

    with ExitStack() as hooks:
        for path, items in lists.items():
            for module in items:
                hooks.enter_context(module.register_forward_hook(partial(keep, path)))
        yield left


@contextmanager
def _layers_replaced_by_state(
    layers: Sequence[nn.Module], state: Float[Tensor, "1 K M"], like: dict[nn.Module, Tensor]
) -> Iterator[None]:
    """Replace the output of each layer by a state inside the block. Only the last layer's output has an effect.

    like: an empty tensor for each layer known to output a single tensor. These layers don't run. Others are added when
    they run.
    """

    def hook(module: nn.Module, _args: Any, output: Any) -> object:
        output_state = first_hidden_states(output)
        if output_state is None or output_state.shape != state.shape:
            return None
        converted = state.to(output_state)
        if isinstance(output, Tensor):
            like[module] = output_state.new_empty(0)
            return converted
        return type(output)(converted if item is output_state else item for item in output)

    with ExitStack() as hooks:
        for layer in layers:
            if layer in like:
                converted = state.to(like[layer])
                hooks.enter_context(patch.object(layer, "forward", lambda *_, converted=converted, **__: converted))
            else:
                hooks.enter_context(layer.register_forward_hook(hook))
        yield


def ablated_runs(model: "Model", trace: object, asker: str) -> Callable[[Sequence[Any]], Iterator[tuple[int, Any]]]:
    """Return a function that runs a trace's text again under many sets of ablations, with `Model.ablated`."""
    source, target = model_inputs_of_trace(model._reader, trace, asker)
    return partial(model._runner.ablated, source, target, logits=True)


def bind_to_trace(model: "Model", trace: object, asker: str, split: Callable[..., Any]) -> Callable[..., Any]:
    """Bind `score_path` or `outcome_path` to a model and the text of a trace. The text is run again."""
    return partial(split, model._session, *model_inputs_of_trace(model._reader, trace, asker))


def gradient_run(
    model: "Model", trace: Trace | PairTrace, exchange: Exchange | None = None, *, heads: bool = False
) -> tuple[GradientPass, Trace | PairTrace]:
    """Run a trace's tokens again with gradients. Return the pass, and a trace whose states and logits are in its graph.

    exchange: replaces token embeddings. heads: whether the pass keeps the values of each head. In the trace, only the
    contextual embeddings and the logits are part of the graph.
    """
    if not isinstance(trace, (Trace, PairTrace)) or isinstance(trace, PairTrace) != model.pairs:
        needs = "a trace of a text and its target" if model.pairs else "a trace of one text"
        raise RegardError(f"gradients: got {type(trace).__name__}, expected {needs}, of {model.name}")
    read, target = model_inputs_of_trace(model._reader, trace, "gradients")
    session = model._session
    done = gradient_pass(session, read, target, session.structure.stacks(read, target), exchange, heads=heads)
    side = copy.copy(trace.sides[-1])
    assert done.last_hidden_state is not None
    if exchange is None:
        now, then = done.last_hidden_state.detach(), side.last_hidden_state.to(done.last_hidden_state.device)
        difference = float((now - then).norm() / then.norm().clamp_min(1e-30)) if now.shape == then.shape else math.inf
        if not difference <= SAME:
            raise RegardError(
                f"gradients: run again, the last hidden state is {difference:.1e} of its length from the trace's: the "
                f"trace has to be of {model.name}, without interventions"
            )
    side.last_hidden_state, side.logits = done.last_hidden_state, done.logits
    if isinstance(trace, Trace):
        return done, side
    pair = copy.copy(trace)
    pair.decoder = side
    return done, pair
