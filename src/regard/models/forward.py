"""One forward pass of a batch, watched from its embeddings to its logits."""

import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.attention.cuts import Cut, Cutting, cutting
from regard.attention.record import Calls, record
from regard.errors import RegardError
from regard.models.assemble import Pass
from regard.models.bridge import Watch, through_the_door
from regard.models.embeddings import embedding_parts
from regard.models.layers import watched_layers
from regard.models.projection import projections
from regard.models.quiet import quiet
from regard.models.without import cuts_of
from regard.tokens import Encoded


class Forward:
    """Runs a model's forward passes, one at a time, and leaves the model as it was.

    filler: the id that shorter texts of a batch are padded with. pairs: whether it is an encoder-decoder.
    """

    def __init__(self, model: Any, *, name: str, filler: int, pairs: bool) -> None:
        self.model, self.name, self.filler, self.pairs = model, name, filler, pairs
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._alone = threading.Lock()  # a forward pass changes the model's setting for its time
        self._takes = set(inspect.signature(model.forward).parameters)

    def run(self, sources: list[Encoded], targets: list[Encoded] | None, without: Sequence[Any]) -> Pass:
        """One watched pass; a second one, with masks written out, where the family computes with its masks."""
        cuts = self._cuts(sources, without)
        inputs = self._inputs(sources, targets)
        if "use_cache" in self._takes:
            inputs["use_cache"] = False
        watch = Watch(self._paths)
        try:
            done = self._watched(inputs, sources, targets, watch, cuts)
        except (TypeError, AttributeError) as error:
            if "Mask" not in str(error):
                raise
            watch = Watch(self._paths, written_out=True)
            done = self._watched(inputs, sources, targets, watch, cuts)
        if watch.calls == 0:
            kind = type(self.model).__name__
            raise RegardError(f"model {self.name!r} ({kind}) does not use the attention interface of transformers")
        return done

    def _watched(
        self,
        inputs: dict[str, Any],
        sources: list[Encoded],
        targets: list[Encoded] | None,
        watch: Watch,
        cuts: list[Cut],
    ) -> Pass:
        ids = [inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs]
        with (
            self._alone,
            quiet(),
            torch.no_grad(),
            self._last_states() as last,
            record() as calls,
            embedding_parts(self.model, ids) as parts,
            watched_layers(self.model, watch) as stacks,
            through_the_door(self.model, watch),
            projections() as blocks,
            cutting(cuts) as cut,
        ):
            output = self.model(**inputs)
        self._check_cuts(cut, calls)
        logits = getattr(output, "logits", None)
        logits = logits if isinstance(logits, Tensor) and logits.ndim == 3 else None
        made, placed = list(calls.values()), dict(zip(calls, blocks, strict=True))
        return Pass(self.name, self.model, sources, targets, made, parts, stacks, last, logits, watch, placed)

    def _cuts(self, sources: list[Encoded], without: Sequence[Any]) -> list[Cut]:
        """The door's cuts for a batch."""
        if without and self.pairs:
            raise RegardError(f"without: {self.name} is an encoder-decoder, whose attention cannot be cut yet")
        config = self.model.config
        layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
        if without and (layers is None or heads is None):
            raise RegardError(f"without: the config of {self.name} names no number of layers and heads")
        sizes = (layers or 0, heads or 0)
        return [cut for n, text in enumerate(sources) for cut in cuts_of(without, text, n, sizes, self.name)]

    def _check_cuts(self, cut: Cutting, calls: Calls) -> None:
        """Refuse cuts that met no attention, and cuts by layer where one module serves as several layers."""
        if any(nth > 0 for _, nth in calls) and any(each.layers is not None for each in cut.cuts):
            raise RegardError(
                f"without: {self.name} calls one attention module several times, its layers have no cuts yet"
            )
        if cut.unmet:
            layers = ", ".join(map(str, cut.unmet[0].layers or ()))
            raise RegardError(f"without: layer {layers} of {self.name} has no attention that could be cut")

    @contextmanager
    def _last_states(self) -> Iterator[dict[str, Tensor]]:
        """The base model's last hidden state, and its encoder's, of the pass inside the block."""
        last: dict[str, Tensor] = {}

        def keep_last(_module: Any, _args: Any, output: Any) -> None:
            for name in ("last_hidden_state", "encoder_last_hidden_state"):
                if isinstance(getattr(output, name, None), Tensor):
                    last[name] = getattr(output, name)

        def keep_head_input(_module: Any, args: Any) -> None:
            last.setdefault("last_hidden_state", args[0])  # where a head goes round its base model, as OPT's does

        handles = [self.model.base_model.register_forward_hook(keep_last)]
        head = self.model.get_output_embeddings()
        if head is not None:
            handles.append(head.register_forward_pre_hook(keep_head_input))
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

        inputs = {}
        for prefix, texts in (("", sources), ("decoder_", targets)):
            if texts is None:
                continue
            rows = [each.ids for each in texts]
            inputs[f"{prefix}input_ids"] = padded(rows, self.filler)
            if f"{prefix}attention_mask" in self._takes and len(set(map(len, rows))) > 1:
                inputs[f"{prefix}attention_mask"] = padded([[1] * len(row) for row in rows], 0)
        if "token_type_ids" in self._takes and all(each.segments is not None for each in sources):
            inputs["token_type_ids"] = padded([list(each.segments or ()) for each in sources], 0)
        return inputs
