"""One forward pass of a batch, watched from its embeddings to its logits."""

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention.recording import record
from regard.capture import eager_attention
from regard.capture.ablation import CallAblation, applied, call_ablations
from regard.capture.build_trace import CapturedPass
from regard.capture.call_ids import KnownCallIds
from regard.capture.embeddings import EmbeddingParts, embedding_parts
from regard.capture.fast_linear import fast_products
from regard.capture.hf_attention import Capture, through_the_door
from regard.capture.hf_masks import TensorMaskError
from regard.capture.hidden_states import watched_layers
from regard.capture.inputs import ModelInput, numbered, unreadable
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.output_path import projections
from regard.capture.quiet import quiet
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.attention_output import UnverifiedOutput


@dataclass(frozen=True)
class Around:
    """What is there around a forward pass, for passes that leave layers out: see `regard.capture.many_ablations`.

    call_ids: those of its attention calls, None where they are found out. skipped: paths of layers that only give
    what they gave before. inside: opened for the pass of the model itself.
    """

    call_ids: KnownCallIds | None = None
    skipped: frozenset[str] = frozenset()
    inside: Callable[[], AbstractContextManager[None]] = nullcontext


PLAIN = Around()


class Session:
    """Runs a model's forward passes, one at a time, and leaves the model as it was.

    filler: the id that shorter texts of a batch are padded with. pairs: whether it is an encoder-decoder.
    """

    def __init__(self, model: Any, *, name: str, filler: int, pairs: bool) -> None:
        self.model, self.name, self.filler, self.pairs = model, name, filler, pairs
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._alone = threading.Lock()  # a forward pass changes the model's setting for its time
        self.takes = set(inspect.signature(model.forward).parameters)
        self.own = not eager_attention.reachable(model)  # whether its attention never comes to the door

    def run(
        self,
        sources: list[Encoded],
        targets: list[Encoded] | None,
        interventions: Sequence[Sequence[Any]],
        keep: CaptureOptions | None = None,
        around: Around = PLAIN,
    ) -> CapturedPass:
        """Make one watched pass; a second one, with masks written out, where the family computes with its masks.

        interventions: what is done to the pass, for each text.
        """
        ablated = any(interventions)
        if ablated and isinstance(sources[0], ModelInput):
            raise RegardError("interventions: they are of texts, they cannot be given with inputs")
        if self.own and ablated:
            raise RegardError(f"interventions: {eager_attention.REASON}, so nothing of {self.name} can be ablated")
        keep = keep or CaptureOptions()
        if self.own and keep.layers is not None and keep.layers != NO_LAYERS:
            raise RegardError(f"layers: {eager_attention.REASON}, {self.name} writes the weights of all its layers out")
        ablations = self._ablations(sources, targets, interventions)
        inputs = self._inputs(sources, targets)
        if "use_cache" in self.takes:
            inputs["use_cache"] = False
        if "logits_to_keep" in self.takes and not keep.logits:
            inputs["logits_to_keep"] = 1  # the least there is: all of them would be (L, V)

        def watched(written_out: bool = False) -> Capture:
            compares = keep.layers != NO_LAYERS
            return Capture(self._paths, keep=keep, compares=compares, skipped=around.skipped, written_out=written_out)

        watch = watched()
        try:
            done = self._watched(inputs, sources, targets, watch, ablations, around)
        except TensorMaskError:  # the family computes with its masks
            watch = watched(written_out=True)
            done = self._watched(inputs, sources, targets, watch, ablations, around)
        if inputs.get("logits_to_keep") and "last_hidden_state" not in done.last:
            del inputs["logits_to_keep"]  # its last hidden state is seen only where it enters the head, in full
            watch = watched(written_out=watch.written_out)
            done = self._watched(inputs, sources, targets, watch, ablations, around)
        if not self.own and (watch.calls == 0 or (self.pairs and len(done.stacks) != 2)):
            self.own = True  # what reaches the door is none of its attention, or one of its two stacks alone
            return self.run(sources, targets, interventions, keep, around)
        return done

    def _watched(
        self,
        inputs: dict[str, Any],
        sources: list[Encoded],
        targets: list[Encoded] | None,
        watch: Capture,
        ablations: list[CallAblation],
        around: Around,
    ) -> CapturedPass:
        ids = [inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs]
        with (
            self._alone,
            quiet(),
            torch.no_grad(),
            self._last_states(head="logits_to_keep" not in inputs) as last,
            record(None if ablations else watch.keep.layers) as calls,  # ablations are checked against every call
            self._products() as maps,
            embedding_parts(self.model, ids) as parts,
            watched_layers(self.model, watch) as stacks,
            self._way(watch) as products,
            projections() as attention_outputs,
            applied(ablations, self.model, watch, pairs=self.pairs, name=self.name, call_ids=around.call_ids) as cut,
            around.inside(),
        ):
            output = self._output(eager_attention.asked(inputs) if self.own else inputs, sources[0])
        watch.reordered |= maps is not None and maps.used
        cut.check(stacks, calls, [each.shape[1] for each in ids])
        if isinstance(sources[0], ModelInput) and (self.own or watch.calls):
            parts.insert(0, EmbeddingParts())  # it has no embeddings of ids
            sources = [numbered(sources[0], stacks, list(calls.values()), self.pairs, self.name)]
        logits = getattr(output, "logits", None)
        logits = logits if watch.keep.logits and isinstance(logits, Tensor) and logits.ndim == 3 else None
        kept = {place: call for place, call in calls.items() if watch.keep.call(call.path)}
        made = list(kept.values())
        placed = dict(zip(kept, attention_outputs, strict=True)) if watch.keep.attention_outputs else {}
        if self.own:
            sizes = [[len(each.tokens) for each in texts] for texts in (sources, targets) if texts is not None]
            made, stacks = eager_attention.reported(output, stacks, products, watch, self.name, sizes)
            placed = {(call.path, call.nth): UnverifiedOutput(eager_attention.REASON) for call in made}
        if self.own or (watch.written_out and not ablations):
            with self._alone:
                eager_attention.check_plain(self.model, inputs, output, self.name)
        return CapturedPass(
            self.name, self.model, sources, targets, made, parts, stacks, last, logits, watch, placed, cut.call_ids
        )

    def _output(self, inputs: dict[str, Any], item: Encoded) -> Any:
        """What the model gives. What it raises where it is given an item of another shape than it takes is told."""
        try:
            return self.model(**inputs)
        except (RegardError, TensorMaskError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # families raise whatever they run into
            if not isinstance(item, ModelInput):
                raise
            raise unreadable(item, self.model, self.name, error) from error

    def _products(self) -> AbstractContextManager[Any]:
        """The faster linear maps; none where a family reports its weights: they are to be those of its plain pass."""
        return nullcontext() if self.own else fast_products()

    def _way(self, watch: Capture) -> Any:
        """How the model's attention is seen."""
        return (eager_attention.by_itself if self.own else through_the_door)(self.model, watch)

    def _ablations(
        self, sources: list[Encoded], targets: list[Encoded] | None, interventions: Sequence[Sequence[Any]]
    ) -> list[CallAblation]:
        """The ablations of a batch's attention calls."""
        return [
            ablation
            for n, (text, own) in enumerate(zip(sources, interventions, strict=True))
            for ablation in call_ablations(own, text, None if targets is None else targets[n], n, self.name)
        ]

    @contextmanager
    def _last_states(self, head: bool) -> Iterator[dict[str, Tensor]]:
        """The base model's last hidden state, and its encoder's, of the pass inside the block.

        head: whether what enters the language head may stand for it, where the base model itself is gone round.
        """
        last: dict[str, Tensor] = {}

        def keep_last(_module: Any, _args: Any, output: Any) -> None:
            for name in ("last_hidden_state", "encoder_last_hidden_state"):
                if isinstance(getattr(output, name, None), Tensor):
                    last[name] = getattr(output, name)

        def keep_head_input(_module: Any, args: Any) -> None:
            last.setdefault("last_hidden_state", args[0])  # where a head goes round its base model, as OPT's does

        ends = (self.model.base_model, self.model)  # what the model itself says goes before its base model's word
        handles = [end.register_forward_hook(keep_last) for end in ends]
        embeddings = self.model.get_output_embeddings() if head else None
        if embeddings is not None:
            handles.append(embeddings.register_forward_pre_hook(keep_head_input))
        try:
            yield last
        finally:
            for handle in handles:
                handle.remove()

    def _inputs(self, sources: list[Encoded], targets: list[Encoded] | None) -> dict[str, Any]:
        """Padded ids (B, L), their mask and segments as far as the model takes them."""
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
        return inputs
