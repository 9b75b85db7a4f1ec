"""The KV cache: keys and values of the tokens so far, so that decoding computes each of them once."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


class KeyValueCache:
    """The KV cache of one attention layer: memory O(T) for T tokens, new rows are only appended.

    Rows are written once and never again: an attention map recorded at an earlier step stays what it was, and all of
    them together hold one buffer. Where gradients are wanted, rows are joined into new tensors instead.
    """

    def __init__(self) -> None:
        self._length = 0
        self._rows: dict[str, Tensor] = {}

    def __len__(self) -> int:
        """Return how many tokens it holds."""
        return self._length

    def append(
        self, key: Float[Tensor, "*B G n D"], value: Float[Tensor, "*B G n E"], positions: Int[Tensor, "*b n"]
    ) -> tuple[Float[Tensor, "*B G S D"], Float[Tensor, "*B G S E"], Int[Tensor, "*b S"]]:
        """Append the newest tokens' keys, values and positions; return those of all tokens so far, as views."""
        newest = {"key": key, "value": value, "positions": positions[..., None]}
        for name, rows in newest.items():
            old = self._rows.get(name)
            if old is not None and (*old.shape[:-2], old.shape[-1]) != (*rows.shape[:-2], rows.shape[-1]):
                raise ValueError(
                    f"cache: given {name} of shape {tuple(rows.shape)}, needs {tuple(old.shape)} as before, the number "
                    "of tokens aside; another sequence needs a cache of its own"
                )
        start, self._length = self._length, self._length + key.shape[-2]
        whole = [self._joined(name, rows, start, self._length) for name, rows in newest.items()]
        return whole[0], whole[1], whole[2][..., 0]

    def _joined(self, name: str, rows: Tensor, start: int, stop: int) -> Tensor:
        buffer = self._rows.get(name)
        graph = torch.is_grad_enabled() and (rows.requires_grad or (buffer is not None and buffer.requires_grad))
        if graph:  # what autograd has saved must not be written into
            self._rows[name] = rows if buffer is None else torch.cat([buffer[..., :start, :], rows], -2)
            return self._rows[name]
        if buffer is None or buffer.shape[-2] < stop or buffer.requires_grad:
            with (
                torch.inference_mode(False),
                torch.no_grad(),
            ):  # a buffer made in inference mode could not be used out of it
                bigger = rows.new_empty(*rows.shape[:-2], max(stop, 2 * start, 16), rows.shape[-1])
                if buffer is not None:
                    bigger[..., :start, :] = buffer[..., :start, :]
            buffer = self._rows[name] = bigger
        with torch.no_grad():
            buffer[..., start:stop, :] = rows
        return buffer[..., :stop, :]
