"""A generation's passes, each watched like any other forward pass, and what they left joined to one pass."""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from regard.attention.ablation import Ablation
from regard.attention.recording import Calls, record
from regard.capture import hf_attention
from regard.capture.build_trace import CapturedPass
from regard.capture.embeddings import EmbeddingParts, embedding_parts
from regard.capture.hf_attention import Capture, through_the_door
from regard.capture.hidden_states import LayerStack, watched_layers
from regard.capture.output_path import projections
from regard.capture.session import Session
from regard.errors import RegardError
from regard.generation.join_steps import WRITTEN, JoinedCall, JoinedOutput, Key, Rows
from regard.generation.step_ablation import StepAblations, ablated_call
from regard.text.tokens import Encoded
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput

NAME = "regard-steps"
JOINED = f"{hf_attention.SAME_INPUTS}, in single passes and as they were joined"
PARTS = ("learned", "positional", "segment", "input")

_given: ContextVar[list[Any] | None] = ContextVar("regard_given", default=None)


class StepCapture:
    """What the passes of one generation did: `watched` runs the model's passes through it, `joined` is the outcome."""

    def __init__(self, forward: Session, *, written_out: bool = False, ablations: Sequence[Ablation] = ()) -> None:
        self._forward, self.model, self.name = forward, forward.model, forward.name
        self._watch = Capture(forward._paths, written_out=written_out, compared_with=JOINED)
        self._ablations = StepAblations(ablations, self.model, self._watch, pairs=forward.pairs, name=self.name)
        self.length = 0  # tokens that went through the model (of an encoder-decoder: its decoder)
        self.last = False  # whether the pass to come is the last one
        self.kernels: set[str] = set()
        self.notes: tuple[str, ...] = ()
        self._passes = 0
        self._calls: dict[Key, JoinedCall] = {}
        self._blocks: dict[Key, JoinedOutput | UnverifiedOutput] = {}
        self._states: dict[str, list[Rows]] = {}
        self._parts: dict[str, Rows] | None = None
        self._ends: dict[str, Rows] = {}  # the last hidden state and the logits
        self._encoder: tuple[Calls, list[EmbeddingParts], dict[str, LayerStack], list[Any], Tensor] | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Every forward pass of the model inside the block is watched, and its rows are kept."""
        own = self.model.forward  # generation calls the model itself, so its forward is what can be watched

        @functools.wraps(own)
        def forward(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("logits_to_keep", None)  # generation wants the last row's, a trace has them all
            self._watch.compares = self._taken
            ids = kwargs["decoder_input_ids" if self._forward.pairs else "input_ids"]
            with self._pass([ids]) as seen, self._forward._last_states(head=True) as ends:
                output = own(*args, **kwargs)
            if not isinstance(getattr(output, "logits", None), Tensor):
                raise RegardError(f"generate: {self.name} gives no logits: there is nothing to choose a token from")
            self._add(*seen, ends, output.logits, ids)
            return output

        patched = self.model.__dict__.get("forward")
        with through_the_door(self.model, self._watch):
            self.model.set_attn_implementation(NAME)
            self.model.forward = forward
            try:
                yield
            finally:
                del self.model.forward
                if patched is not None:
                    self.model.forward = patched

    def encode(self, ids: Int[Tensor, "1 S"]) -> Any:
        """Run the encoder of an encoder-decoder, once; inside `watched`. Returns its output."""
        with self._pass([ids]) as (calls, _, parts, stacks, attention_outputs), torch.no_grad():
            output = self.model.get_encoder()(input_ids=ids, return_dict=True)
        self._encoder = calls, parts, stacks, attention_outputs, output.last_hidden_state.clone()
        self.kernels |= {call.kernel for call in calls.values()}
        return output

    def joined(self, source: Encoded, target: Encoded | None) -> CapturedPass:
        """All passes as one. target: of an encoder-decoder, what its decoder read.

        Raises:
            RegardError: attention did not come to the door.
        """
        watch, calls = self._watch, []
        written: dict[Any, Tensor] = {}
        for each in self._calls.values():
            try:
                call, apart, out, compared = each.whole(self.length, written)
            except RuntimeError as error:  # sizes that do not fit
                raise RegardError(
                    f"generate: {each.path}: its queries and keys are not one for each token, so they cannot be joined"
                ) from error
            watch.found(apart, out, compared)
            calls.append(call)
        if written:
            self.notes += (WRITTEN,)
        attention_outputs = {key: b.whole() if isinstance(b, JoinedOutput) else b for key, b in self._blocks.items()}
        stacks = {path: LayerStack(path, [rows.whole() for rows in each], True) for path, each in self._states.items()}
        last = {"last_hidden_state": self._ends["last"].whole()} if "last" in self._ends else {}
        parts = [self._joined_parts(source if target is None else target)]
        if self._encoder is not None:
            first, found, above, around, left = self._encoder
            calls = [*first.values(), *calls]
            attention_outputs |= dict(zip(first, around, strict=True))
            stacks, parts = above | stacks, [found[0] if found else EmbeddingParts(), *parts]
            last["encoder_last_hidden_state"] = left
        if not calls:
            raise RegardError(f"generate: the attention of {self.name} does not come to the door: it cannot be joined")
        return CapturedPass(
            name=self.name,
            model=self.model,
            sources=[source],
            targets=None if target is None else [target],
            calls=calls,
            parts=parts,
            stacks=stacks,
            last=last,
            logits=self._ends["logits"].whole(),
            watch=watch,
            attention_outputs=attention_outputs,
        )

    def _joined_parts(self, text: Encoded) -> EmbeddingParts:
        """The embedding parts, where the learned one is what the model's table has for the text's ids.

        In a step's one row a table of positions may be taken for the one of tokens, where id and position are equal.
        """
        parts = EmbeddingParts()
        for name, rows in (self._parts or {}).items():
            setattr(parts, name, rows.whole())
        if parts.learned is None or self._forward.pairs:
            return parts
        ids = torch.tensor([text.ids], device=self.model.device)
        with torch.no_grad():
            table = self.model.get_input_embeddings()(ids)
        if table.shape == parts.learned.shape:
            scale = (table * parts.learned).sum() / (table * table).sum()  # by which the model multiplies it
            if not float((scale * table - parts.learned).abs().max()) <= 1e-5 * float(parts.learned.abs().max()):
                self.notes += ("embedding parts are left out: the learned ones are not those of the tokens",)
                return EmbeddingParts()
        return parts

    @property
    def _taken(self) -> bool:
        """Whether rows of the pass at hand are held against others: the first, the last and some steps, ever rarer."""
        return self.last or self._passes & (self._passes - 1) == 0

    @contextmanager
    def _pass(
        self, ids: Sequence[Tensor]
    ) -> Iterator[tuple[Calls, list[Any], list[EmbeddingParts], dict[str, LayerStack], Any]]:
        """One pass, watched: its calls, the masks they were given, embedding parts, stacks and blocks."""
        given: list[Any] = []
        token = _given.set(given)
        try:
            with (
                self._ablations.opened(self.length),
                record(keep=("value", "output")) as calls,
                embedding_parts(self.model, ids) as parts,
                watched_layers(self.model, self._watch) as stacks,
                projections() as attention_outputs,
            ):
                yield calls, given, parts, stacks, attention_outputs
        finally:
            _given.reset(token)
            self._watch.masks.clear()  # they speak of all keys: kept for every pass, they would be T × T numbers
            self._watch.sizes.clear()

    def _add(
        self,
        calls: Calls,
        given: list[Any],
        parts: list[EmbeddingParts],
        stacks: dict[str, LayerStack],
        attention_outputs: list[AttentionOutput | UnverifiedOutput],
        ends: dict[str, Tensor],
        logits: Tensor,
        ids: Tensor,
    ) -> None:
        """Keep what is new of a pass."""
        past, first = self.length, self._passes == 0
        memo: dict[Any, Any] = {}
        crossing = {self._watch.paths[number] for number in self._watch.crossing if number in self._watch.paths}
        if not first and (set(calls) != set(self._calls) or set(stacks) != set(self._states)):
            raise RegardError(f"generate: token {past} of {self.name} went through other layers than those before")
        if first:
            self._ablations.check((self._encoder[2] if self._encoder else {}) | stacks)
        met = self._ablations.met
        for (key, call), mask, block, ablations in zip(calls.items(), given, attention_outputs, met, strict=True):
            if first:
                self._calls[key] = JoinedCall(call, mask, call.path in crossing, ablations)
                self._blocks[key] = JoinedOutput(block) if isinstance(block, AttentionOutput) else block
            self._calls[key].add(call, past, mask, memo)
            if self._taken:
                self._calls[key].sample(call, past, self.last)
            self.kernels.add(call.kernel)
            around = self._blocks[key]
            if isinstance(around, JoinedOutput):
                self._blocks[key] = around.add(block) or around
        for path, stack in stacks.items():
            rows = self._states.setdefault(path, [Rows() for _ in stack.hidden_states])
            for state, each in zip(stack.hidden_states, rows, strict=True):
                each.add(state)
        self._add_parts(parts, first)
        if "last_hidden_state" in ends:
            self._ends.setdefault("last", Rows()).add(ends["last_hidden_state"])
        self._ends.setdefault("logits", Rows()).add(logits)
        self.length += ids.shape[1]
        self._passes += 1

    def _add_parts(self, parts: list[EmbeddingParts], first: bool) -> None:
        """Embedding parts, as long as every pass has the same ones."""
        found = {name: getattr(parts[0], name) for name in PARTS} if parts else {}
        found = {name: part for name, part in found.items() if part is not None}
        if first:
            self._parts = {name: Rows() for name in found}
        if self._parts is None or set(found) != set(self._parts):
            if self._parts:
                self.notes += ("embedding parts are left out: they were not the same in every pass",)
            self._parts = None
            return
        for name, rows in self._parts.items():
            rows.add(found[name])


def _attention(module: nn.Module, query: Any, key: Any, value: Any, attention_mask: Any, **rest: Any) -> Any:
    """The bridge's attention function, with a word on the mask that each call was given."""
    given = _given.get()
    if given is not None:
        given.append(attention_mask)
    with ablated_call(module, query.shape[2], key.shape[2]):
        return hf_attention.attention(module, query, key, value, attention_mask, **rest)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, hf_attention.mask)
