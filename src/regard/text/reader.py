"""What a model is given to read, texts or token ids, as tokens that fit it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor

from regard.errors import RegardError
from regard.text.tokens import Encoded, check_text, encode_all, encoded_ids

Ids = Sequence[int] | Sequence[Sequence[int]] | Int[Tensor, "..."]  # of one text, or of several


@dataclass(frozen=True, eq=False)
class Reader:
    """A tokenizer (None: ids alone are read) and the model it belongs to. limit: the most tokens of a text."""

    model: Any
    tokenizer: Any
    name: str
    limit: int | None

    def read(self, name: str, given: Any, ids: Any, *, cut: bool = False) -> tuple[bool, list[Encoded]]:
        """Whether one was given, and what was given as tokens. cut: it will be cut, so that it may have any length."""
        if (given is None) == (ids is None):
            raise RegardError(f"trace: needs either {name} or its ids, given {'none' if given is None else 'both'}")
        if ids is not None:
            rows = ids.tolist() if isinstance(ids, Tensor) else list(ids)
            single = bool(rows) and isinstance(rows[0], int)
            return single, [self._from_ids(name, row, cut) for row in ([rows] if single else rows)]
        single = isinstance(given, str)
        if not single and (isinstance(given, (bytes, dict)) or not isinstance(given, Iterable)):
            raise RegardError(f"trace: given {type(given).__name__}, needs a string or several of them")
        texts = [given] if single else list(given)
        if not texts:
            raise RegardError("trace: given no text, needs at least one")
        names = [name] if single else [f"{name} {n}" for n in range(1, len(texts) + 1)]
        return single, self._encode(texts, names, cut)

    def _from_ids(self, name: str, row: Sequence[int], cut: bool) -> Encoded:
        size = self._ids()
        row = [int(number) for number in row]
        if not row:
            raise RegardError(f"{name} ids are empty: needs at least one")
        wrong = [number for number in row if not 0 <= number < size]
        if wrong:
            raise RegardError(f"{name} id {wrong[0]} is out of range: {self.name} has ids 0 to {size - 1}")
        return self._checked(encoded_ids(row), name, cut)

    def _encode(self, texts: Sequence[str], names: Sequence[str], cut: bool) -> list[Encoded]:
        if self.tokenizer is None:
            raise RegardError(f"model {self.name!r} has no tokenizer: give ids=...")
        checked = [check_text(text, name) for text, name in zip(texts, names, strict=True)]
        found = encode_all(self.tokenizer, checked, target=names[0].startswith("target"))
        return [self._fitting(encoded, name, cut) for encoded, name in zip(found, names, strict=True)]

    def _fitting(self, encoded: Encoded, name: str, cut: bool) -> Encoded:
        if name.startswith("target"):  # the decoder reads its target one token late: it begins with the start token
            start = self.model.config.decoder_start_token_id
            encoded = encoded.after(self.tokenizer, start)
        size = self._ids()
        if max(encoded.ids) >= size:
            raise RegardError(
                f"{name}: its tokenizer gives id {max(encoded.ids)}, {self.name} has ids 0 to {size - 1}: they do not "
                "belong together"
            )
        return self._checked(encoded, name, cut)

    def _ids(self) -> int:
        """How many ids the model has."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:
            table = None
        if getattr(table, "weight", None) is None:
            raise RegardError(f"model {self.name!r} has no table of ids: it reads no text")
        return table.weight.shape[0]

    def _checked(self, encoded: Encoded, name: str, cut: bool) -> Encoded:
        count = len(encoded.tokens)
        if self.limit is not None and count > self.limit and not cut:
            pair = getattr(self.model.config, "is_encoder_decoder", False)
            hint = "" if pair else "; it can be read in overlapping windows, with --window (window=)"
            raise RegardError(
                f"{name} has {count} tokens, special ones included: {self.name} takes {self.limit} at most{hint}"
            )
        return encoded
