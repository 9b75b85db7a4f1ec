"""A pretrained transformer that texts are traced through."""

import inspect
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.cuts import Cut, Cutting, cutting
from regard.attention.record import Calls, record
from regard.errors import RegardError
from regard.models.assemble import Pass, pair_of, trace_of
from regard.models.bridge import Watch, through_the_door
from regard.models.embeddings import embedding_parts, position_limit
from regard.models.layers import watched_layers
from regard.models.projection import projections
from regard.models.quiet import quiet
from regard.models.without import cuts_of
from regard.tokens import Encoded, check_text, encode, encoded_ids

Ids = Sequence[int] | Sequence[Sequence[int]] | Int[Tensor, "..."]  # of one text, or of several

BATCH_TOKENS = 8192  # tokens, padding included, that go through a model at once


class Pretrained:
    """A model and its tokenizer; `regard.load` makes it, `trace` is what it is for.

    model and tokenizer are the transformers objects themselves (tokenizer None: texts are given as ids). limit: the
    most tokens of a text, None for no limit. pairs: whether it is an encoder-decoder, which reads a text and a target.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, notes: tuple[str, ...] = ()) -> None:
        self.model, self.tokenizer, self.name, self.notes = model, tokenizer, name, notes
        if not model._can_set_attn_implementation():
            raise RegardError(
                f"model {name!r} ({type(model).__name__}) computes attention in code of its own, outside the attention "
                "interface of transformers: it cannot be traced"
            )
        self.limit = position_limit(model)
        self.pairs = bool(getattr(model.config, "is_encoder_decoder", False))
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._alone = threading.Lock()  # a forward pass changes the model's setting for its time
        self._takes = set(inspect.signature(model.forward).parameters)

    def __repr__(self) -> str:
        return f"Pretrained({self.name!r}, {type(self.model).__name__}, limit={self.limit})"

    def trace(
        self,
        text: str | Sequence[str] | None = None,
        *,
        target: str | Sequence[str] | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        without: Sequence[Any] = (),
    ) -> Any:
        """Run one text, or several in batches, and keep everything the forward pass did.

        Args:
            text: one text or several.
            target: of an encoder-decoder, what its decoder reads: one text, or one for each text.
            ids, target_ids: token ids instead of texts, taken as they are; for models without a tokenizer.
            without: what is cut, of `regard.head(layer, head)` and `regard.edge(query, key)`; in every text.

        Returns a `Trace` for one text, a list of them, in order, for several. An encoder-decoder gives a `PairTrace`.

        Raises:
            RegardError: no text, a blank one, invalid Unicode, more tokens than the model has positions for, or a
                target that is missing or not wanted.
        """
        single, sources = self._read("text", text, ids)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None:
            if not self.pairs:
                raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
            one, targets = self._read("target", target, target_ids)
            if one != single or len(targets) != len(sources):
                raise RegardError(f"target: given {len(targets)}, needs one for each of the {len(sources)} texts")
        elif self.pairs:
            raise RegardError(f"target: {self.name} is an encoder-decoder, it needs a target beside the text")
        traces: dict[int, Any] = {}
        lengths = [len(each.tokens) for each in sources]
        if targets is not None:
            lengths = [max(n, len(each.tokens)) for n, each in zip(lengths, targets, strict=True)]
        for batch in batches(lengths):
            started = time.perf_counter()
            done = self._forward([sources[n] for n in batch], targets and [targets[n] for n in batch], without)
            made = [pair_of(done, n) if self.pairs else trace_of(done, n) for n in range(len(batch))]
            share = (time.perf_counter() - started) / len(batch)
            for number, trace in zip(batch, made, strict=True):
                trace.status.seconds = share
                trace.status.notes += self.notes + tuple(f"cut: {each}" for each in without)
                traces[number] = trace
        return traces[0] if single else [traces[n] for n in range(len(sources))]

    def _read(self, name: str, given: Any, ids: Any) -> tuple[bool, list[Encoded]]:
        """Whether one was given, and what was given as tokens."""
        if (given is None) == (ids is None):
            raise RegardError(f"trace: needs either {name} or its ids, given {'none' if given is None else 'both'}")
        if ids is not None:
            rows = ids.tolist() if isinstance(ids, Tensor) else list(ids)
            single = bool(rows) and isinstance(rows[0], int)
            return single, [self._ids(name, row) for row in ([rows] if single else rows)]
        single = isinstance(given, str)
        if not single and (isinstance(given, (bytes, dict)) or not isinstance(given, Iterable)):
            raise RegardError(f"trace: given {type(given).__name__}, needs a string or several of them")
        texts = [given] if single else list(given)
        if not texts:
            raise RegardError("trace: given no text, needs at least one")
        return single, [self._encode(each, name if single else f"{name} {n}") for n, each in enumerate(texts, 1)]

    def _ids(self, name: str, row: Sequence[int]) -> Encoded:
        size = self.model.get_input_embeddings().num_embeddings
        row = [int(number) for number in row]
        if not row:
            raise RegardError(f"{name} ids are empty: needs at least one")
        wrong = [number for number in row if not 0 <= number < size]
        if wrong:
            raise RegardError(f"{name} id {wrong[0]} is out of range: {self.name} has ids 0 to {size - 1}")
        return self._checked(encoded_ids(row), name)

    def _encode(self, text: str, name: str) -> Encoded:
        if self.tokenizer is None:
            raise RegardError(f"model {self.name!r} has no tokenizer: give ids=...")
        target = name.startswith("target")
        encoded = encode(self.tokenizer, check_text(text, name), target=target)
        if target:  # the decoder reads its target one token late: it begins with the start token
            start = self.model.config.decoder_start_token_id
            encoded = encoded.after(self.tokenizer, start)
        size = self.model.get_input_embeddings().num_embeddings
        if max(encoded.ids) >= size:
            raise RegardError(
                f"{name}: its tokenizer gives id {max(encoded.ids)}, {self.name} has ids 0 to {size - 1}: they do not "
                "belong together"
            )
        return self._checked(encoded, name)

    def _checked(self, encoded: Encoded, name: str) -> Encoded:
        count = len(encoded.tokens)
        if self.limit is not None and count > self.limit:
            raise RegardError(
                f"{name} has {count} tokens, special ones included: {self.name} takes {self.limit} at most"
            )
        return encoded

    def _forward(self, sources: list[Encoded], targets: list[Encoded] | None, without: Sequence[Any]) -> Pass:
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
        filler = getattr(self.tokenizer, "pad_token_id", None) or 0

        def padded(rows: list[list[int]], fill: int) -> Tensor:
            longest = max(map(len, rows))
            return torch.tensor([row + [fill] * (longest - len(row)) for row in rows], device=device)

        inputs = {}
        for prefix, texts in (("", sources), ("decoder_", targets)):
            if texts is None:
                continue
            rows = [each.ids for each in texts]
            inputs[f"{prefix}input_ids"] = padded(rows, filler)
            if f"{prefix}attention_mask" in self._takes and len(set(map(len, rows))) > 1:
                inputs[f"{prefix}attention_mask"] = padded([[1] * len(row) for row in rows], 0)
        if "token_type_ids" in self._takes and all(each.segments is not None for each in sources):
            inputs["token_type_ids"] = padded([list(each.segments or ()) for each in sources], 0)
        return inputs


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of texts that go through the model together: of like lengths, so that little is padding."""
    order = sorted(range(len(lengths)), key=lambda n: lengths[n])
    batch: list[int] = []
    for number in order:
        if batch and lengths[number] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
