"""A pretrained transformer that texts are traced through."""

import inspect
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.record import Call, record
from regard.errors import RegardError
from regard.models.bridge import Watch, through_the_door
from regard.models.embeddings import Parts, embedding_parts, position_limit
from regard.tokens import Encoded, check_text, encode
from regard.trace import Status, Trace

BATCH_TOKENS = 8192  # tokens, padding included, that go through a model at once


class Pretrained:
    """A model and its tokenizer; `regard.load` makes it, `trace` is what it is for.

    model and tokenizer are the transformers objects themselves. limit: the most tokens of a text, None for no limit.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, name
        if not model._can_set_attn_implementation():
            raise RegardError(
                f"model {name!r} ({type(model).__name__}) computes attention in code of its own, outside the attention "
                "interface of transformers: it cannot be traced"
            )
        self.limit = position_limit(model)
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._alone = threading.Lock()  # a forward pass changes the model's setting for its time
        self._takes = set(inspect.signature(model.forward).parameters)

    def __repr__(self) -> str:
        return f"Pretrained({self.name!r}, {type(self.model).__name__}, limit={self.limit})"

    def trace(self, text: str | Sequence[str]) -> Any:
        """Run one text, or several in batches, and keep everything the forward pass did.

        Returns a `Trace` for a string, a list of them, in order, for a sequence of strings.

        Raises:
            RegardError: no text, a blank one, invalid Unicode, or more tokens than the model has positions for.
        """
        single = isinstance(text, str)
        texts = [text] if isinstance(text, str) else list(text)
        if not texts:
            raise RegardError("trace: given no text, needs at least one")
        encoded = [self._encode(each, "text" if single else f"text {n}") for n, each in enumerate(texts, 1)]
        traces: dict[int, Trace] = {}
        for batch in batches([len(each.tokens) for each in encoded]):
            started = time.perf_counter()
            made = self._forward([encoded[n] for n in batch])
            share = (time.perf_counter() - started) / len(batch)
            for number, trace in zip(batch, made, strict=True):
                trace.status.seconds = share
                traces[number] = trace
        return traces[0] if single else [traces[n] for n in range(len(texts))]

    def _encode(self, text: str, name: str) -> Encoded:
        encoded = encode(self.tokenizer, check_text(text, name))
        if self.limit is not None and len(encoded.tokens) > self.limit:
            count = len(encoded.tokens)
            raise RegardError(
                f"{name} has {count} tokens, special ones included: {self.name} takes {self.limit} at most"
            )
        return encoded

    def _forward(self, batch: list[Encoded]) -> list[Trace]:
        inputs, lengths = self._inputs(batch)
        watch = Watch(self._paths, lengths)
        with (
            self._alone,
            torch.no_grad(),
            record() as calls,
            embedding_parts(self.model) as parts,
            through_the_door(self.model, watch),
        ):
            output = self.model(**inputs, output_hidden_states=True)
        if watch.calls == 0:
            kind = type(self.model).__name__
            raise RegardError(f"model {self.name!r} ({kind}) does not use the attention interface of transformers")
        return [self._trace(n, each, list(calls.values()), parts, output, watch) for n, each in enumerate(batch)]

    def _inputs(self, batch: list[Encoded]) -> tuple[dict[str, Tensor], Int[Tensor, " B"]]:
        """Padded ids (B, L), their mask and segments as far as the model takes them, and the texts' lengths."""
        device = self.model.device
        longest = max(len(each.tokens) for each in batch)
        filler = self.tokenizer.pad_token_id or 0
        lengths = torch.tensor([len(each.tokens) for each in batch], device=device)

        def padded(rows: list[list[int]], fill: int) -> Tensor:
            return torch.tensor([row + [fill] * (longest - len(row)) for row in rows], device=device)

        inputs = {"input_ids": padded([each.ids for each in batch], filler)}
        if "attention_mask" in self._takes and len(set(lengths.tolist())) > 1:
            inputs["attention_mask"] = padded([[1] * len(each.tokens) for each in batch], 0)
        if "token_type_ids" in self._takes and all(each.segments is not None for each in batch):
            inputs["token_type_ids"] = padded([list(each.segments or ()) for each in batch], 0)
        return inputs, lengths

    def _trace(self, n: int, encoded: Encoded, calls: list[Call], parts: Parts, output: Any, watch: Watch) -> Trace:
        """One text's part of a batch, its padding taken away."""
        run = slice(0, len(encoded.tokens))

        def own(batched: Tensor | None) -> Tensor | None:
            return None if batched is None else batched[n, run].clone()

        states = tuple(s[n, run].clone() for s in output.hidden_states)
        last = output.get("last_hidden_state")
        status = Status(
            model=self.name,
            kernels=tuple(sorted({call.kernel for call in calls})),
            device=str(self.model.device),
            dtype=str(self.model.dtype).removeprefix("torch."),
            difference=watch.difference,
            rows_compared=watch.compared,
            embedding_difference=parts.difference(),
            unknown=encoded.unknown,
            dropped=encoded.dropped,
        )
        return Trace(
            text=encoded.text,
            tokens=encoded.tokens,
            learned=own(parts.learned),
            positional=own(parts.positional),
            segment=own(parts.segment),
            input=own(parts.input),
            states=states,
            contextual=states[-1] if last is None or torch.equal(last[n, run], states[-1]) else last[n, run].clone(),
            logits=own(output.get("logits")),
            attention=tuple(call.weights.crop(n, run, run) for call in calls),
            values=tuple(None if call.value is None else call.value[n, :, run] for call in calls),
            status=status,
        )


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
