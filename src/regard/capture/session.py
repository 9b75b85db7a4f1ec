"""Run captured forward passes of a model, one at a time. A copy of the modules is used, so the model doesn't change.

`CaptureOptions` define how a pass runs. If the pass turns out to need other options, regard runs another pass:

    attention through   masks            logits       observation                      next pass
    ------------------  ---------------  -----------  -------------------------------  ----------------------------
    the interface       specifications   any          the model computes with a mask   masks written out as tensors
    the interface       any              last row     no last hidden state             all rows of the logits
    the interface       any              any          no call, or a missing stack      weights that the model reports
    reported weights    the model's own  any          weights that fail the checks    none: RegardError

Once a pass has used reported weights, all later passes use them from the start.

In half precision, attention is compared on queries and keys that are already rounded, so the difference in a status
doesn't include this rounding. To measure it, the model runs twice on the beginning of a text: unchanged, and with
weights converted to float32 when they are used, which avoids copies of large weights.
"""

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.recording import record
from regard.capture import eager_attention
from regard.capture.build_trace import CapturedPass
from regard.capture.embeddings import EmbeddingParts, record_embeddings
from regard.capture.hooks import record_last_hidden_states, record_layers
from regard.capture.inputs import CHOICE, ModelInput, class_names, logits_in, named_tokens, unreadable_inputs
from regard.capture.interventions.ablation import applied
from regard.capture.interventions.names import CallNumbering
from regard.capture.interventions.resolve import Changes
from regard.capture.model_structure import ModelStructure
from regard.capture.options import LAYERS_ALONE, NO_LAYERS, CaptureOptions, TensorMaskError
from regard.capture.output_path import follow_outputs
from regard.capture.prefix import NO_REUSE, PassReuse
from regard.capture.state import FEW, Capture, ModuleIndex, computing_dtype, of_transformers
from regard.capture.twin import Twin
from regard.errors import RegardError
from regard.model_files.stored_weight import HALVES, StoredWeight
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import Encoded
from regard.trace.attention_output import UnverifiedOutput

_capturing: ContextVar[bool] = ContextVar("regard_capturing", default=False)


class Session:
    """Run the captured passes of one model.

    filler: the id that pads shorter texts of a batch. pairs: whether it is an encoder-decoder. takes: the parameters of
    its forward. model: the copy that passes run on (see `Twin`). original: the model itself. index: of the modules in
    the last pass. reports_weights: whether regard uses the weights that the model reports, because its attention can't
    go through regard. This is known from the model's class or after the first pass, and None before.
    reads_padding: whether padding changes a text's states, None before this was tested (`regard.models.runner`).
    labels: of a classifier. watch: a context manager that captures the attention calls of this kind of model.
    """

    reports_weights: bool | None = None

    def __init__(self, model: Any, *, name: str, filler: int, pairs: bool) -> None:
        self._twin, self.original = Twin(model), model
        self.model: Any = self._twin.model
        self.name, self.filler, self.pairs = name, filler, pairs
        self.takes = set(inspect.signature(model.forward).parameters)
        self._lock, self._process, self._held = threading.RLock(), os.getpid(), 0
        self._arithmetic: dict[str, tuple[str, ...]] = {}  # dtype -> notes, measured on the first text
        self.index = ModuleIndex(self.model)
        self.labels = class_names(model)
        # without a padding token, a classifier that uses a text's last token can't find it
        self._unpadded = bool(self.labels) and getattr(self._text_config(), "pad_token_id", None) is None
        self.reads_padding: bool | None = True if self._unpadded else None
        parts = (module for module in model.modules() if of_transformers(module, "PreTrainedModel"))
        if self.reports_weights is None and not any(part._can_set_attn_implementation() for part in parts):
            self.reports_weights = True

    @staticmethod
    def watch(model: Any, capture: Capture) -> AbstractContextManager[None]:
        """Capture the attention calls of a transformers model. Other models don't import transformers."""
        from regard.capture.hf_attention import through_interface

        return through_interface(model, capture)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Reserve the copy for this thread inside the block, after bringing the copy and its index up to date."""
        if _capturing.get():
            raise RegardError(
                f"trace: {self.name} cannot be run while a pass is captured in the same thread, as by a hook of the "
                "model: run it once that pass is over"
            )
        if self._process != os.getpid():  # a forked child doesn't have the threads that it would wait for
            torch.set_num_threads(1)
            self._lock, self._process, self._held = threading.RLock(), os.getpid(), 0
        with self._lock:
            if not self._held:
                self._twin.refresh()
                if list(self.model.modules()) != self.index.modules:
                    self.index = ModuleIndex(self.model)
                if self._unpadded:  # on the copy: else a batch is rejected, even without padding
                    self._text_config().pad_token_id = -1
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1

    def _text_config(self) -> Any:
        config = self.model.config
        return config.get_text_config() if hasattr(config, "get_text_config") else config

    @cached_property
    def structure(self) -> ModelStructure:
        """Return the model structure for interventions. It is learned when first needed."""
        return ModelStructure(self.model, self.name, pairs=self.pairs, plain_pass=self._plain_pass)

    def run(
        self,
        sources: list[Encoded],
        targets: list[Encoded] | None,
        interventions: Sequence[Sequence[Any]],
        keep: CaptureOptions | None = None,
        reuse: PassReuse = NO_REUSE,
    ) -> CapturedPass:
        """Run a captured pass of a batch, and repeat it if the first pass shows that it needs other options."""
        keep = keep or CaptureOptions()
        with self.alone():
            changed = any(interventions)
            if changed and isinstance(sources[0], ModelInput):
                raise RegardError("interventions: they work on texts, so they cannot be used with inputs or images")
            dtype, name = computing_dtype(self.model)
            if dtype.itemsize < torch.float32.itemsize and name not in self._arithmetic:
                self._arithmetic[name] = ()  # for the passes that measure the notes
                target = None if targets is None else targets[0]
                self._arithmetic[name] = half_precision_notes(self, sources[0], target, name)
            changes = self.structure.changes(sources, targets, interventions) if changed else Changes()
            # reports_weights may be known by now, if resolving changes of states ran a pass
            last_row = "logits_to_keep" in self.takes and not keep.logits
            keep = replace(keep, reported=bool(self.reports_weights), last_row=last_row)
            if keep.reported:
                self._check_reported(keep, changes)
            run_once = partial(self._pass, sources, targets, changes, reuse)
            done = _run_as_needed(run_once, keep)
            if keep.reported or reuse.skipped:  # before skipping layers, a plain pass has shown this
                return done
            reached = done.capture.call_count > 0 and (not self.pairs or len(done.stacks) == 2)
            if self.reports_weights is None:
                self.reports_weights = not reached
            if reached:
                return done
            self._check_reported(keep, changes)
            return _run_as_needed(run_once, replace(keep, reported=True))

    @contextmanager
    def capture_attention(
        self, capture: Capture, *, reported: bool = False
    ) -> Iterator[eager_attention.Products | None]:
        """Capture the model's attention inside the block. For reported weights, yield the factors of products."""
        token = _capturing.set(True)
        try:
            with (eager_attention.reporting if reported else self.watch)(self.model, capture) as factors:
                yield factors
        finally:
            _capturing.reset(token)

    def _check_reported(self, keep: CaptureOptions, changes: Changes) -> None:
        """Check that the request is possible with reported weights."""
        if keep.layers is not None and keep.layers != NO_LAYERS:
            raise RegardError(f"layers: {eager_attention.REASON}, {self.name} writes the weights of all its layers out")
        if changes.calls:
            raise RegardError(
                f"interventions: {eager_attention.REASON}, so no head, edge or attention of {self.name} can be ablated "
                "or patched; hidden states and feed-forward outputs can be patched, and states steered"
            )

    def _pass(
        self, sources: list[Encoded], targets: list[Encoded] | None, changes: Changes, reuse: PassReuse,
        keep: CaptureOptions,
    ) -> CapturedPass:  # fmt: skip
        """Run one pass: enter context managers that observe or change it, run the model, and collect the results."""
        # hooks that change states; finding their modules may need a separate pass
        hooks: Callable[[int], AbstractContextManager[Any]] = nullcontext
        if changes.states:
            hooks = self.structure.hooks(changes, sources[0], None if targets is None else targets[0])
        capture = Capture(self.index, keep, skipped_layers=reuse.skipped)
        inputs = reuse.inputs(self.inputs(sources, targets, keep))
        ids = [inputs[name].flatten(0, -2) for name in ("input_ids", "decoder_input_ids") if name in inputs]
        tokens = sum(tensor.numel() for tensor in ids) if ids else sys.maxsize  # unknown for images
        capture.to_compare = [] if tokens <= FEW else None
        if keep.reported:  # request the model's own weights
            inputs |= {"output_attentions": True, "output_hidden_states": True}
        # with padding, each text's statistics are computed after removing it
        even = all(len({len(text.tokens) for text in texts}) <= 1 for texts in (sources, targets or ()))
        numbering = None
        if changes.calls or keep.call_ids:
            numbering = CallNumbering(self.model, capture, pairs=self.pairs, known=reuse.call_ids)
        with ExitStack() as opened:
            opened.enter_context(quiet())
            opened.enter_context(torch.no_grad())
            factors = opened.enter_context(self.capture_attention(capture, reported=keep.reported))
            opened.enter_context(hooks(reuse.past))  # before recording, which must see the changed states
            if numbering is not None:
                lengths = [tensor.shape[1] for tensor in ids]
                opened.enter_context(applied(changes.calls, numbering, capture, lengths, self.name, reuse.past))
            # changes need a check of every call
            layers = None if changes.calls else keep.layers if keep.attention else NO_LAYERS
            kept = ("value", "output") if changes.calls else None
            capture.calls = opened.enter_context(record(layers, kept, (even and keep.statistics) or False))
            if keep.embeddings:
                capture.embeddings = opened.enter_context(record_embeddings(self.index, ids))
            opened.enter_context(record_layers(self.model, capture))
            if keep.attention_outputs:
                capture.attention_outputs = opened.enter_context(follow_outputs())
            watched = record_last_hidden_states(self.model, head_input=not keep.last_row)
            capture.last = opened.enter_context(watched)
            opened.enter_context(reuse.context())
            try:
                output = self.model(**inputs)
            except (RegardError, TensorMaskError, MemoryError, torch.OutOfMemoryError):
                raise
            except Exception as error:  # the type depends on the architecture
                if not isinstance(sources[0], ModelInput):
                    raise
                raise unreadable_inputs(sources[0], self.model, self.name, error) from error
        calls, stacks, texts = list(capture.calls.values()), capture.stacks, sources
        if isinstance(sources[0], ModelInput) and (keep.reported or capture.call_count):
            capture.embeddings[: len(ids)] = [EmbeddingParts()]  # no ids, or the image replaces some embeddings
            texts = [named_tokens(sources[0], self.model.config, stacks, calls, self.pairs, self.name)]
        calls = [call for call in calls if keep.call(call.path)]
        outputs: dict[tuple[str, int], Any] = {}
        if factors is not None:  # weights are reported
            sizes = [[len(text.tokens) for text in side] for side in (texts, targets) if side is not None]
            calls, stacks = eager_attention.reported_calls(
                output, stacks, factors, capture, self.name, sizes, changed=bool(changes.states)
            )
            calls = [call for call in calls if keep.attention]
            outputs = {(call.path, call.nth): UnverifiedOutput(eager_attention.REASON) for call in calls}
        elif keep.attention_outputs:
            places = [(call.path, call.nth) for call in calls]
            outputs = dict(zip(places, capture.attention_outputs, strict=True))
        # compare with a plain pass, as these options may change the result
        if keep.reported or (keep.written_masks and not changes):
            again = reuse.inputs(self.inputs(sources, targets, keep))  # made again, as a cache in them was filled
            with hooks(reuse.past):
                eager_attention.check_plain(self.model, again, output, self.name)
        return CapturedPass(
            name=self.name, model=self.model, sources=texts, targets=targets, calls=calls, stacks=stacks,
            logits=logits_in(output, self.labels) if keep.logits else None, labels=self.labels,
            capture=capture, attention_outputs=outputs, call_ids=numbering,
            notes=self._arithmetic.get(computing_dtype(self.model)[1], ()),
        )  # fmt: skip

    def _plain_pass(
        self, source: Encoded, target: Encoded | None, context: Callable[[], AbstractContextManager[None]]
    ) -> CapturedPass:
        """Run a pass of one text without interventions and keep only its states."""
        return self.run([source], None if target is None else [target], [()], LAYERS_ALONE, PassReuse(context=context))

    def inputs(self, sources: list[Encoded], targets: list[Encoded] | None, keep: CaptureOptions) -> dict[str, Any]:
        """Return the model's inputs: padded ids (B, L), mask and segments if supported, and output options."""
        device = self.model.device

        def padded(rows: list[list[int]], fill: int) -> Tensor:
            longest = max(map(len, rows))
            return torch.tensor([row + [fill] * (longest - len(row)) for row in rows], device=device)

        item = sources[0]
        inputs: dict[str, Any] = dict(item.tensors or {}) if isinstance(item, ModelInput) else {}
        for prefix, texts in (("", sources), ("decoder_", targets)):
            if texts is None or not texts[0].tokens:
                continue
            rows = [text.ids for text in texts]
            inputs[f"{prefix}input_ids"] = padded(rows, self.filler)
            if f"{prefix}attention_mask" in self.takes and len(set(map(len, rows))) > 1:
                inputs[f"{prefix}attention_mask"] = padded([[1] * len(row) for row in rows], 0)
        if "token_type_ids" in self.takes and all(text.segments is not None for text in sources):
            inputs["token_type_ids"] = padded([list(text.segments or ()) for text in sources], 0)
        if "use_cache" in self.takes:
            inputs["use_cache"] = False
        if keep.last_row:
            inputs["logits_to_keep"] = 1  # the minimum; all rows would be (L, V)
        if self.labels == CHOICE:  # (B, 1, L): each text is the only choice of its row
            inputs = {n: x[:, None] if isinstance(x, Tensor) and x.ndim == 2 else x for n, x in inputs.items()}
        return inputs


def _run_as_needed(run_once: Callable[[CaptureOptions], CapturedPass], keep: CaptureOptions) -> CapturedPass:
    """Run a pass, and repeat it with mask tensors or all logits if needed."""
    try:
        done = run_once(keep)
    except TensorMaskError:  # the model computes with its mask
        keep = replace(keep, written_masks=True)
        done = run_once(keep)
    if keep.last_row and "last_hidden_state" not in done.capture.last:
        # the last hidden state is only visible as the head's full input
        done = run_once(replace(keep, last_row=False))
    return done


FIRST = 64  # number of tokens that run twice


def half_precision_notes(session: Session, source: Encoded, target: Encoded | None, name: str) -> tuple[str, ...]:
    """Return notes on the difference between a model's half-precision results and float32.

    session: of the model. source: a text. target: for an encoder-decoder, the text of its decoder. name: of the model's
    dtype.
    """
    model = session.model
    first, written = _first_tokens(source), None if target is None else [_first_tokens(target)]
    keep = CaptureOptions(logits=False, attention_outputs=False)
    with session.alone():
        half = session.run([first], written, [()], keep)
        try:
            with torch.autocast(model.device.type, enabled=False), _computing_in_float32(model):
                full = session.run([_with_float32_tensors(first)], written, [()], keep)
        except (RegardError, RuntimeError, TypeError) as error:  # some models only run in their own dtype
            return (f"The model computes in {name}. A comparison with float32 isn't available ({error}).",)
    weights = [
        float((half_call.weights.dense() - full_call.weights.dense()).abs().max())
        for half_call, full_call in zip(half.calls, full.calls, strict=True)
    ]
    states = [
        float((half.capture.last[key].float() - wide).abs().max() / wide.abs().max().clamp(min=1e-30))
        for key, wide in full.capture.last.items()
    ]
    return (
        f"The model computes in {name}. Compared with float32, attention weights differ by up to "
        f"{max(weights, default=0.0):.1e} and last states by up to {max(states, default=0.0):.1e} of their largest "
        f"number (first {len(half.sources[0].tokens)} tokens).",
    )


def _first_tokens(text: Encoded) -> Encoded:
    """Return the first tokens of a text for the float32 comparison. Other inputs are returned whole."""
    if isinstance(text, ModelInput):
        return text
    return replace(text, tokens=text.tokens[:FIRST], segments=None if text.segments is None else text.segments[:FIRST])


def _with_float32_tensors(text: Encoded) -> Encoded:
    """Return a model input with its tensors in float32."""
    if not isinstance(text, ModelInput) or text.tensors is None:
        return text
    wide = {name: tensor.float() if tensor.dtype in HALVES else tensor for name, tensor in text.tensors.items()}
    return replace(text, tensors=wide)


@contextmanager
def _computing_in_float32(model: nn.Module) -> Iterator[None]:
    """Convert a model's weights to float32 when they are used inside the block, and restore them afterwards."""
    replaced: list[tuple[Any, str, Tensor]] = []
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            replaced += [(tensors, name, x) for name, x in tensors.items() if x is not None and x.dtype in HALVES]
    try:
        for tensors, name, tensor in replaced:
            wide = StoredWeight.of(tensor.detach()) if tensor.ndim > 1 else tensor.detach().float()
            tensors[name] = nn.Parameter(wide, requires_grad=False) if isinstance(tensor, nn.Parameter) else wide
        yield
    finally:
        for tensors, name, tensor in replaced:
            tensors[name] = tensor
