"""Run captured forward passes of a model, one at a time, and leave the model as it was.

How a pass is run is fixed before it starts, in `PassOptions`. What a pass turns out to need is given to another pass:

    attention through   masks            logits       what is seen of it               the next pass
    ------------------  ---------------  -----------  -------------------------------  ----------------------------
    the interface       specifications   any          the model computes with a mask   masks written out as tensors
    the interface       any              last row     no last hidden state             all rows of the logits
    the interface       any              any          no call, or one of two stacks    weights that the model reports
    reported weights    the model's own  any          weights that cannot be believed  none: RegardError

The last but one is remembered of the first pass: all later ones begin with it.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from regard.capture import eager_attention, hf_attention
from regard.capture.build_trace import CapturedPass
from regard.capture.embeddings import EmbeddingParts
from regard.capture.fast_linear import fast_products, largest_matrix
from regard.capture.hf_masks import TensorMaskError
from regard.capture.hooks import record_pass
from regard.capture.inputs import ModelInput, numbered_tokens, unreadable_inputs
from regard.capture.interventions.ablation import applied
from regard.capture.interventions.call_ids import KnownCallIds
from regard.capture.interventions.resolve import Changes
from regard.capture.layout import Layout
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.quiet import quiet
from regard.capture.state import Capture
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.attention_output import UnverifiedOutput


def as_it_is(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return a model's inputs unchanged."""
    return inputs


@dataclass(frozen=True)
class LayerReuse:
    """What a pass takes from an earlier one, where some layers are not computed: see `regard.capture.many_ablations`.

    call_ids: those of its attention calls, None where they are found out. skipped: paths of layers that repeat what
    they gave before. context: opened around the forward call of the model. inputs: what is done to the model's inputs.
    past: how many tokens of the text it begins after.
    """

    call_ids: KnownCallIds | None = None
    skipped: frozenset[str] = frozenset()
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    inputs: Callable[[dict[str, Any]], dict[str, Any]] = as_it_is
    past: int = 0


NO_REUSE = LayerReuse()


@dataclass(frozen=True)
class PassOptions:
    """How one pass is run: see the table above.

    reported: whether attention is what the model reports of itself; else it goes through regard's attention function.
    written_masks: whether masks are written out as tensors. last_row: whether the logits are those of the last row.
    """

    keep: CaptureOptions
    reported: bool = False
    written_masks: bool = False
    last_row: bool = False


@dataclass(frozen=True)
class _Batch:
    """What a pass reads: texts, of an encoder-decoder their targets, and what is done to all of them."""

    sources: list[Encoded]
    targets: list[Encoded] | None
    changes: Changes = field(default_factory=Changes)

    @property
    def even(self) -> bool:
        """Whether its texts are of one length, and its targets too: nothing is padded."""
        return all(len({len(each.tokens) for each in texts}) <= 1 for texts in (self.sources, self.targets or ()))


class Session:
    """Runs the captured passes of one model.

    filler: the id that shorter texts of a batch are padded with. pairs: whether it is an encoder-decoder. takes: names
    of the parameters of its forward. lock: held while the model runs, for a pass changes the model's settings for its
    time.
    """

    def __init__(self, model: Any, *, name: str, filler: int, pairs: bool) -> None:
        self.model, self.name, self.filler, self.pairs = model, name, filler, pairs
        self.takes = set(inspect.signature(model.forward).parameters)
        self.lock = threading.Lock()
        self._module_paths = {id(module): path for path, module in model.named_modules()}
        self._largest = largest_matrix(model)
        self._reports = self._known_to_report()
        self.layout = Layout(model, name, pairs=pairs, plain_pass=self._plain_pass)

    @property
    def reports_weights(self) -> bool:
        """Whether the model's attention cannot be called, so that its weights are those that it reports itself.

        Known from the model's class, else from its first pass; False before that.
        """
        return self._reports is True

    def run(
        self,
        sources: list[Encoded],
        targets: list[Encoded] | None,
        interventions: Sequence[Sequence[Any]],
        keep: CaptureOptions | None = None,
        reuse: LayerReuse = NO_REUSE,
    ) -> CapturedPass:
        """Make one captured pass of a batch; more of them where the first shows that it needs other options.

        interventions: what is done to the pass, for each text.

        Raises:
            RegardError: interventions or layers that this model cannot have, inputs that it cannot read, or attention
                that cannot be captured.
        """
        ablated = any(interventions)
        if ablated and isinstance(sources[0], ModelInput):
            raise RegardError("interventions: they are of texts, they cannot be given with inputs")
        keep = keep or CaptureOptions()
        options = PassOptions(
            keep, reported=self.reports_weights, last_row="logits_to_keep" in self.takes and not keep.logits
        )
        self._check(options, ablated)
        batch = _Batch(sources, targets, self.layout.changes(sources, targets, interventions))
        done = self._as_needed(batch, options, reuse)
        if options.reported or reuse.skipped:  # of a pass that skips layers, the plain one before it showed it
            return done
        reached = done.capture.calls > 0 and (not self.pairs or len(done.stacks) == 2)
        if self._reports is None:
            self._reports = not reached
        if reached:
            return done
        options = replace(options, reported=True)
        self._check(options, ablated)
        return self._as_needed(batch, options, reuse)

    def new_capture(self, **settings: Any) -> Capture:
        """The state of a pass that is to be captured. settings: fields of `Capture`."""
        return Capture(self._module_paths, **settings)

    def capture_attention(
        self, capture: Capture, *, reported: bool = False
    ) -> AbstractContextManager[eager_attention.Products | None]:
        """Capture the model's attention inside the block; of reported weights, gives the factors of products."""
        return (eager_attention.reporting if reported else hf_attention.through_interface)(self.model, capture)

    def _known_to_report(self) -> bool | None:
        """Whether the model has to report its weights itself; None where its first pass will show it."""
        return None if eager_attention.uses_interface(self.model) else True

    def _check(self, options: PassOptions, ablated: bool) -> None:
        """Raise RegardError for what cannot be done with weights that a model reports."""
        if options.reported and ablated:
            raise RegardError(
                f"interventions: {eager_attention.REASON}, so nothing of {self.name} can be ablated or patched"
            )
        if options.reported and options.keep.layers is not None and options.keep.layers != NO_LAYERS:
            raise RegardError(f"layers: {eager_attention.REASON}, {self.name} writes the weights of all its layers out")

    def _as_needed(self, batch: _Batch, options: PassOptions, reuse: LayerReuse) -> CapturedPass:
        """Make a pass; again with masks or logits written out, where it needs them."""
        try:
            done = self._pass(batch, options, reuse)
        except TensorMaskError:
            options = replace(options, written_masks=True)
            done = self._pass(batch, options, reuse)
        if options.last_row and "last_hidden_state" not in done.last:
            # its last hidden state is seen only where it enters the head, in full
            done = self._pass(batch, replace(options, last_row=False), reuse)
        return done

    def _pass(self, batch: _Batch, options: PassOptions, reuse: LayerReuse) -> CapturedPass:
        keep, sources, reported = options.keep, batch.sources, options.reported
        capture = self.new_capture(
            keep=keep,
            compare=keep.compare and keep.layers != NO_LAYERS,
            written_masks=options.written_masks,
            skipped_layers=reuse.skipped,
        )
        inputs = reuse.inputs(self.inputs(sources, batch.targets, options))
        ids = [inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs]
        # reported weights are to be those of the plain pass; ablations are checked against every call
        tokens = sum(each.numel() for each in ids) if ids else sys.maxsize  # how many a picture makes is not known
        products = nullcontext() if reported else fast_products(tokens, self._largest)
        layers = None if batch.changes.calls else keep.layers
        hooks = self.layout.hooks(batch.changes, batch.sources[0], None if batch.targets is None else batch.targets[0])
        # of a batch with padding, each text's statistics are computed once the padding is away
        statistics = keep.statistics if batch.even else None
        with (
            self.lock,
            quiet(),
            torch.no_grad(),
            products as fast,
            self.capture_attention(capture, reported=reported) as factors,
            hooks.opened(reuse.past),  # before what records: it shall see the states as they go on
            record_pass(
                self.model,
                capture,
                ids,
                head_input=not options.last_row,
                layers=layers,
                keep=("value", "output") if batch.changes.calls else None,
                statistics=statistics,
            ) as record,
            applied(
                batch.changes.calls,
                self.model,
                capture,
                pairs=self.pairs,
                name=self.name,
                call_ids=reuse.call_ids,
                past=reuse.past,
            ) as ablations,
            reuse.context(),
        ):
            output = self._output(eager_attention.with_weights(inputs) if reported else inputs, sources[0])
        capture.reordered |= fast is not None and fast.used
        calls, stacks, embeddings = list(record.calls.values()), record.stacks, record.embeddings
        ablations.check(stacks, record.calls, [each.shape[1] for each in ids])
        if isinstance(sources[0], ModelInput) and (reported or capture.calls):
            embeddings.insert(0, EmbeddingParts())  # it has no embeddings of ids
            sources = [numbered_tokens(sources[0], stacks, calls, self.pairs, self.name)]
        logits = getattr(output, "logits", None)
        logits = logits if keep.logits and isinstance(logits, Tensor) and logits.ndim == 3 else None
        calls = [call for call in calls if keep.call(call.path)]
        outputs: dict[tuple[str, int], Any] = {}
        if keep.attention_outputs:
            places = [(call.path, call.nth) for call in calls]
            outputs = dict(zip(places, record.attention_outputs, strict=True))
        if factors is not None:
            sizes = [[len(each.tokens) for each in texts] for texts in (sources, batch.targets) if texts is not None]
            calls, stacks = eager_attention.reported_calls(output, stacks, factors, capture, self.name, sizes)
            outputs = {(call.path, call.nth): UnverifiedOutput(eager_attention.REASON) for call in calls}
        if reported or (options.written_masks and not batch.changes):
            again = reuse.inputs(self.inputs(batch.sources, batch.targets, options))  # a cache among them was filled
            with self.lock:
                eager_attention.check_plain(self.model, again, output, self.name)
        return CapturedPass(
            name=self.name,
            model=self.model,
            sources=sources,
            targets=batch.targets,
            calls=calls,
            embeddings=embeddings,
            stacks=stacks,
            last=record.last,
            logits=logits,
            capture=capture,
            attention_outputs=outputs,
            call_ids=ablations.call_ids,
        )

    def _output(self, inputs: dict[str, Any], item: Encoded) -> Any:
        """Call the model. Raises RegardError where it cannot read an item of inputs."""
        try:
            return self.model(**inputs)
        except (RegardError, TensorMaskError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # families raise whatever they run into
            if not isinstance(item, ModelInput):
                raise
            raise unreadable_inputs(item, self.model, self.name, error) from error

    def _plain_pass(
        self, source: Encoded, target: Encoded | None, context: Callable[[], AbstractContextManager[None]]
    ) -> CapturedPass:
        """A pass of one text without interventions, of which states alone are kept."""
        keep = CaptureOptions(None, logits=False, attention_outputs=False, embeddings=False, compare=False)
        return self.run([source], None if target is None else [target], [()], keep, LayerReuse(context=context))

    def inputs(self, sources: list[Encoded], targets: list[Encoded] | None, options: PassOptions) -> dict[str, Any]:
        """Padded ids (B, L), their mask and segments as far as the model takes them, and what it is asked for."""
        device = self.model.device

        def padded(rows: list[list[int]], fill: int) -> Tensor:
            longest = max(map(len, rows))
            return torch.tensor([row + [fill] * (longest - len(row)) for row in rows], device=device)

        item = sources[0]
        inputs: dict[str, Any] = dict(item.tensors or {}) if isinstance(item, ModelInput) else {}
        for prefix, texts in (("", sources), ("decoder_", targets)):
            if texts is None or isinstance(texts[0], ModelInput):
                continue
            rows = [each.ids for each in texts]
            inputs[f"{prefix}input_ids"] = padded(rows, self.filler)
            if f"{prefix}attention_mask" in self.takes and len(set(map(len, rows))) > 1:
                inputs[f"{prefix}attention_mask"] = padded([[1] * len(row) for row in rows], 0)
        if "token_type_ids" in self.takes and all(each.segments is not None for each in sources):
            inputs["token_type_ids"] = padded([list(each.segments or ()) for each in sources], 0)
        if "use_cache" in self.takes:
            inputs["use_cache"] = False
        if options.last_row:
            inputs["logits_to_keep"] = 1  # the least there is: all of them would be (L, V)
        return inputs
