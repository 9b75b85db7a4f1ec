"""Capture every pass of a generation like any other forward pass, and join what they left to one pass.

A pass adds rows to what the passes before it left; `joined` turns them into one `CapturedPass`:

    of a pass                                  kept as                              joined
    -----------------------------------------  -----------------------------------  ---------------------------------
    attention calls, the masks they were given `JoinedCall` (`join_steps`)          one call over all tokens, compared
    attention outputs                          `JoinedOutput`                       one, or why they cannot be joined
    hidden states, last ones, logits           `Rows`                               all rows
    embedding parts                            `Rows`, while every pass has them    all rows, checked against the table
    the encoder's pass                         as it is: there is one               as it is
"""

import copy
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.map_statistics import Statistics
from regard.capture.build_trace import CapturedPass
from regard.capture.embeddings import EmbeddingParts
from regard.capture.hooks import record_pass
from regard.capture.interventions.resolve import Changes
from regard.capture.interventions.states import StateHooks
from regard.capture.options import CaptureOptions
from regard.capture.session import Session
from regard.capture.state import SAME_INPUTS, Capture, Comparison, LayerStack
from regard.errors import RegardError
from regard.generation.join_steps import WRITTEN, JoinedCall, JoinedOutput, Key, Rows
from regard.generation.step_ablation import StepAblations
from regard.text.tokens import Encoded
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput

JOINED = f"{SAME_INPUTS}, in single passes and as they were joined"
PARTS = ("token_embeddings", "position_embeddings", "segment", "input")


class StepCapture:
    """The passes of one generation: `captured` runs the model's passes through it, `joined` is the outcome.

    changes: what is done to every pass; hooks: what makes those of states. statistics: of every attention map, computed
    once all passes are joined. length: tokens that went through the model
    (of an encoder-decoder: its decoder). last: set before the last pass.
    """

    def __init__(
        self,
        session: Session,
        *,
        written_masks: bool = False,
        changes: Changes | None = None,
        hooks: StateHooks | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        self._session, self.model, self.name = session, session.model, session.name
        keep = CaptureOptions(statistics=statistics, written_masks=written_masks)
        self._capture = Capture(session.index, keep, comparison=Comparison(JOINED))
        calls = [] if changes is None else changes.calls
        self._hooks = hooks
        self._ablations = StepAblations(calls, self.model, self._capture, pairs=session.pairs, name=self.name)
        self.length = 0
        self.last = False
        self.kernels: set[str] = set()
        self.notes: tuple[str, ...] = ()
        self._passes = 0
        self._calls: dict[Key, JoinedCall] = {}
        self._outputs: dict[Key, JoinedOutput | UnverifiedOutput] = {}
        self._states: dict[str, list[Rows]] = {}
        self._layers: dict[str, dict[tuple[str, int], int]] = {}  # of each stack, the layer of each call
        self._parts: dict[str, Rows] | None = None
        self._ends: dict[str, Rows] = {}  # the last hidden state and the logits
        self._encoder: tuple[Capture, Tensor] | None = None  # and its last hidden state

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Capture every forward pass of the model inside the block, and keep its rows."""
        original = self.model.forward  # generation calls the model itself, so its forward is what is wrapped

        @functools.wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("logits_to_keep", None)  # generation wants the last row's, a trace has them all
            self._capture.compare = self._sampled
            ids = kwargs["decoder_input_ids" if self._session.pairs else "input_ids"]
            with self._pass([ids]) as masks:
                output = original(*args, **kwargs)
            if not isinstance(getattr(output, "logits", None), Tensor):
                raise RegardError(f"generate: {self.name} gives no logits: there is nothing to choose a token from")
            self._add(masks, output.logits, ids)
            return output

        patched = self.model.__dict__.get("forward")
        with self._session.capture_attention(self._capture):
            self.model.forward = forward
            try:
                yield
            finally:
                del self.model.forward
                if patched is not None:
                    self.model.forward = patched

    def encode(self, ids: Int[Tensor, "1 S"]) -> Any:
        """Run the encoder of an encoder-decoder, once; inside `captured`. Returns its output."""
        with self._pass([ids]), torch.no_grad():
            output = self.model.get_encoder()(input_ids=ids, return_dict=True)
        self._encoder = copy.copy(self._capture), output.last_hidden_state.clone()  # each pass has lists of its own
        self.kernels |= {call.kernel for call in self._capture.calls.values()}
        return output

    def joined(self, source: Encoded, target: Encoded | None) -> CapturedPass:
        """Make all passes as one. target: of an encoder-decoder, what its decoder read."""
        calls = []
        written: dict[Any, Tensor] = {}
        for item in self._calls.values():
            try:
                call, comparison = item.whole(self.length, written)
            except RuntimeError as error:  # sizes that do not fit
                raise RegardError(
                    f"generate: {item.path}: its queries and keys are not one for each token, so they cannot be joined"
                ) from error
            self._capture.comparison.include(comparison)
            calls.append(call)
        if written:
            self.notes += (WRITTEN,)
        outputs = {key: item.whole() if isinstance(item, JoinedOutput) else item for key, item in self._outputs.items()}
        stacks = {
            path: LayerStack(path, [rows.whole() for rows in item], True, calls=self._layers[path])
            for path, item in self._states.items()
        }
        last = {"last_hidden_state": self._ends["last"].whole()} if "last" in self._ends else {}
        embeddings = [self._joined_parts(source if target is None else target)]
        if self._encoder is not None:
            encoder, encoded = self._encoder
            calls = [*encoder.calls.values(), *calls]
            outputs |= dict(zip(encoder.calls, encoder.attention_outputs, strict=True))
            stacks = encoder.stacks | stacks
            embeddings = [encoder.embeddings[0] if encoder.embeddings else EmbeddingParts(), *embeddings]
            last["encoder_last_hidden_state"] = encoded
        if not calls:
            raise RegardError(
                f"generate: no attention of {self.name} goes through the interface of transformers: it cannot be joined"
            )
        return CapturedPass(
            name=self.name, model=self.model, sources=[source], targets=None if target is None else [target],
            calls=calls, embeddings=embeddings, stacks=stacks, last=last, logits=self._ends["logits"].whole(),
            capture=self._capture, attention_outputs=outputs,
        )  # fmt: skip

    def _joined_parts(self, text: Encoded) -> EmbeddingParts:
        """The embedding parts, where the learned one is what the model's table has for the text's ids.

        In a step's one row a table of positions may be taken for the one of tokens, where id and position are equal.
        """
        parts = EmbeddingParts()
        for name, rows in (self._parts or {}).items():
            setattr(parts, name, rows.whole())
        if parts.token_embeddings is None or self._session.pairs:
            return parts
        ids = torch.tensor([text.ids], device=self.model.device)
        with torch.no_grad():
            table = self.model.get_input_embeddings()(ids)
        learned = parts.token_embeddings
        if table.shape == learned.shape:
            scale = (table * learned).sum() / (table * table).sum()  # by which the model multiplies it
            if not float((scale * table - learned).abs().max()) <= 1e-5 * float(learned.abs().max()):
                self.notes += ("Embedding components are left out, because they don't match the embedding table.",)
                return EmbeddingParts()
        return parts

    @property
    def _sampled(self) -> bool:
        """Whether rows of the pass to come are compared: of the first, the last and some steps, ever rarer."""
        return self.last or self._passes & (self._passes - 1) == 0

    @contextmanager
    def _pass(self, ids: Sequence[Tensor]) -> Iterator[list[Any]]:
        """Capture one pass; gives the masks that its calls were given."""
        masks = self._capture.call_masks = []
        try:
            with (
                self._ablations.opened(self.length),
                nullcontext() if self._hooks is None else self._hooks.opened(self.length),
                record_pass(
                    self.model,
                    self._capture,
                    ids,
                    head_input=True,
                    keep=("value", "output"),
                    whole=not self._session.pairs,  # the encoder ran before the first step
                ),
            ):
                yield masks
        finally:
            self._capture.call_masks = None  # they speak of all keys: kept for every pass, they would be T × T numbers

    def _add(self, masks: list[Any], logits: Tensor, ids: Tensor) -> None:
        """Keep what is new of a pass. Raises RegardError where it went through other layers than those before it."""
        capture = self._capture
        calls, stacks = capture.calls, capture.stacks
        past, first = self.length, self._passes == 0
        memo: dict[Any, Any] = {}
        if not first and (set(calls) != set(self._calls) or set(stacks) != set(self._states)):
            raise RegardError(f"generate: token {past} of {self.name} went through other layers than those before")
        if first:
            self._ablations.check((self._encoder[0].stacks if self._encoder else {}) | stacks)
        ablations_of = self._ablations.held
        for (key, call), mask, output, ablations in zip(
            calls.items(), masks, capture.attention_outputs, ablations_of, strict=True
        ):
            if first:
                self._calls[key] = JoinedCall(call, mask, call.path in capture.cross_paths, ablations)
                self._outputs[key] = JoinedOutput(output) if isinstance(output, AttentionOutput) else output
            self._calls[key].add(call, past, mask, memo)
            if self._sampled:
                self._calls[key].sample(call, past, self.last)
            self.kernels.add(call.kernel)
            joined = self._outputs[key]
            if isinstance(joined, JoinedOutput):
                self._outputs[key] = joined.add(output) or joined
        for path, stack in stacks.items():
            self._layers[path] = stack.calls
            rows = self._states.setdefault(path, [Rows() for _ in stack.hidden_states])
            for state, state_rows in zip(stack.hidden_states, rows, strict=True):
                state_rows.add(state)
        self._add_parts(capture.embeddings, first)
        if "last_hidden_state" in capture.last:
            self._ends.setdefault("last", Rows()).add(capture.last["last_hidden_state"])
        self._ends.setdefault("logits", Rows()).add(logits)
        self.length += ids.shape[1]
        self._passes += 1

    def _add_parts(self, parts: list[EmbeddingParts], first: bool) -> None:
        """Embedding parts, as long as every pass has the same ones."""
        present = {name: getattr(parts[0], name) for name in PARTS} if parts else {}
        present = {name: part for name, part in present.items() if part is not None}
        if first:
            self._parts = {name: Rows() for name in present}
        if self._parts is None or set(present) != set(self._parts):
            if self._parts:
                self.notes += ("Embedding components are left out, because they differ between passes.",)
            self._parts = None
            return
        for name, rows in self._parts.items():
            rows.add(present[name])
