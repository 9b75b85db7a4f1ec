"""A pretrained transformer that texts are traced through."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import RegardError
from regard.models.assemble import pair_of, trace_of
from regard.models.embeddings import position_limit
from regard.models.forward import Forward
from regard.models.reading import Ids, Reader
from regard.tokens import Encoded

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
        self._reader = Reader(model, tokenizer, name, self.limit)
        filler = getattr(tokenizer, "pad_token_id", None) or 0
        self._passes = Forward(model, name=name, filler=filler, pairs=self.pairs)

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
        single, sources = self._reader.read("text", text, ids)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None:
            if not self.pairs:
                raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
            one, targets = self._reader.read("target", target, target_ids)
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
            done = self._passes.run([sources[n] for n in batch], targets and [targets[n] for n in batch], without)
            made = [pair_of(done, n) if self.pairs else trace_of(done, n) for n in range(len(batch))]
            share = (time.perf_counter() - started) / len(batch)
            for number, trace in zip(batch, made, strict=True):
                trace.status.seconds = share
                trace.status.notes += self.notes + tuple(f"cut: {each}" for each in without)
                traces[number] = trace
        return traces[0] if single else [traces[n] for n in range(len(sources))]


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
