"""Multi-head attention: self- and cross-attention, grouped heads, positions, and decoding with a KV cache.

    output = concat(head_1, …, head_H) @ W_O,  head_h = attend(x @ W_Q[h], context @ W_K[h], context @ W_V[h])

Shapes: B batch, H query heads, G key/value heads (H % G == 0), L queries, S keys, d_k and d_v widths of a head.
Sources: Vaswani et al. 2017, "Attention Is All You Need"; for grouped heads: Ainslie et al. 2023, "GQA: Training
Generalized Multi-Query Transformer Models from Multi-Head Checkpoints".
"""

from contextlib import nullcontext

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Mask
from regard.attention.recording import scope
from regard.checks import arguments_named, check_integer
from regard.nn.positions import Positions
from regard.nn.single_head import as_linear_weights, check_input_width, check_layer_input


class KeyValueCache:
    """The KV cache of one attention layer. It needs O(T) memory for T tokens.

    Rows are only appended and never overwritten, so attention maps of earlier steps stay unchanged and share a buffer.
    If gradients are needed, rows are concatenated to new tensors instead.
    """

    def __init__(self) -> None:
        self._length = 0
        self._rows: dict[str, Tensor] = {}

    def __len__(self) -> int:
        """Return the number of cached tokens."""
        return self._length

    def append(
        self, key: Float[Tensor, "*B G n D"], value: Float[Tensor, "*B G n E"], positions: Int[Tensor, "*b n"]
    ) -> tuple[Float[Tensor, "*B G S D"], Float[Tensor, "*B G S E"], Int[Tensor, "*b S"]]:
        """Append keys, values and positions of new tokens. Returns those of all tokens so far, as views."""
        newest = {"key": key, "value": value, "positions": positions[..., None]}
        for name, rows in newest.items():
            old = self._rows.get(name)
            if old is not None and (*old.shape[:-2], old.shape[-1]) != (*rows.shape[:-2], rows.shape[-1]):
                raise ValueError(
                    f"cache: got {name} of shape {tuple(rows.shape)}, expected {tuple(old.shape)} as before, except "
                    "for the number of tokens; use a new cache for another sequence"
                )
        start, self._length = self._length, self._length + key.shape[-2]
        joined = [self._joined(name, rows, start, self._length) for name, rows in newest.items()]
        return joined[0], joined[1], joined[2][..., 0]

    def _joined(self, name: str, rows: Tensor, start: int, stop: int) -> Tensor:
        buffer = self._rows.get(name)
        graph = torch.is_grad_enabled() and (rows.requires_grad or (buffer is not None and buffer.requires_grad))
        if graph:  # don't overwrite tensors that autograd saved
            self._rows[name] = rows if buffer is None else torch.cat([buffer[..., :start, :], rows], -2)
            return self._rows[name]
        if buffer is None or buffer.shape[-2] < stop or buffer.requires_grad:
            with (
                torch.inference_mode(False),
                torch.no_grad(),
            ):  # a buffer made in inference mode couldn't be used outside it
                bigger = rows.new_empty(*rows.shape[:-2], max(stop, 2 * start, 16), rows.shape[-1])
                if buffer is not None:
                    bigger[..., :start, :] = buffer[..., :start, :]
            buffer = self._rows[name] = bigger
        with torch.no_grad():
            buffer[..., start:stop, :] = rows
        return buffer[..., :stop, :]


_no_scope = nullcontext()


class MultiHeadAttention(nn.Module):
    """Several heads in parallel, concatenated and projected to d_model. `layer(x)` returns (B, L, d_model).

    `layer(x, return_attention=True)` returns (output, AttentionMap of shape (B, H, L, S)). Or use `regard.record()`.
    For an input without a batch axis, (L, d_model), the output is (L, d_model) and the map is (H, L, S).
    """

    @arguments_named
    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        key_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        d_context: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        softcap: float | None = None,
        positions: Positions | None = None,
        path: str = "",
    ) -> None:
        """Build the four projections.

        Args:
            key_heads: G, the number of key and value heads. Default: heads.
            d_k: width of a head's queries and keys. Default: d_model / heads. d_v: width of its values. Default: d_k.
            d_context: width of the input of the keys and values. Default: d_model.
            bias: whether the projections have a bias.
            dropout: of the weights, while training.
            scale, softcap: as in `regard.attend`.
            positions: the positional encoding, from `regard.nn.positions` or your own `Positions`.
            path: the path of its recorded calls, inside the enclosing scopes.

        Raises:
            TypeError, ValueError: an argument is wrong. The message gives its name, its value and the expected value.
        """
        super().__init__()
        check_integer("d_model", d_model)
        check_integer("heads", heads)
        key_heads = heads if key_heads is None else key_heads
        check_integer("key_heads", key_heads)
        if heads % key_heads:
            raise ValueError(f"key_heads: got {key_heads}, expected a number that divides the {heads} heads")
        if d_k is None and d_model % heads:
            raise ValueError(f"d_k is needed, because d_model {d_model} isn't a multiple of {heads} heads")
        d_k = d_model // heads if d_k is None else d_k
        d_v = d_k if d_v is None else d_v
        d_context = d_model if d_context is None else d_context
        for name, width in (("d_k", d_k), ("d_v", d_v), ("d_context", d_context)):
            check_integer(name, width)
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f"dropout: got {dropout}, expected a probability from 0 to 1")
        if positions is not None and not isinstance(positions, Positions):
            raise TypeError(f"positions: got {type(positions).__name__}, expected one of regard.nn.positions")
        self.heads, self.key_heads, self.d_k, self.d_v = heads, key_heads, d_k, d_v
        self.dropout, self.scale, self.softcap, self.path = dropout, scale, softcap, path
        self.query = nn.Linear(d_model, heads * d_k, bias)
        self.key = nn.Linear(d_context, key_heads * d_k, bias)
        self.value = nn.Linear(d_context, key_heads * d_v, bias)
        self.output = nn.Linear(heads * d_v, d_model, bias)
        self.positions = positions

    @classmethod
    def from_weights(
        cls,
        query: Float[Tensor, "_ _"],
        key: Float[Tensor, "_ _"],
        value: Float[Tensor, "_ _"],
        output: Float[Tensor, "_ _"],
        *,
        heads: int,
        convention: str,
    ) -> "MultiHeadAttention":
        """Make a layer without biases from copies of W_Q, W_K, W_V and W_O, which contain all heads side by side.

        Args:
            output: W_O, from the concatenated heads to d_model.
            query, key, value, convention: as in `SelfAttention.from_weights`, with the same errors.

        Raises:
            ValueError: the widths aren't multiples of heads, or W_O doesn't fit.
        """
        query, key, value = as_linear_weights(convention, query=query, key=key, value=value)
        check_input_width("value", value, key)
        output = output.mT if convention == "x @ W" else output
        if query.shape[0] % heads or value.shape[0] % heads:
            raise ValueError(f"heads: got {heads}, expected a divisor of {query.shape[0]} and {value.shape[0]}")
        if output.shape != (query.shape[1], value.shape[0]):
            shape, needed = tuple(output.shape), (query.shape[1], value.shape[0])
            raise ValueError(f"output: got {shape} as (out, in), expected {needed}")
        with torch.device("meta"):  # draws no random numbers
            layer = cls(
                d_model=query.shape[1], heads=heads, d_k=query.shape[0] // heads, d_v=value.shape[0] // heads,
                d_context=key.shape[1], bias=False,
            )  # fmt: skip
        parts = (layer.query, layer.key, layer.value, layer.output)
        for part, weight in zip(parts, (query, key, value, output), strict=True):
            part.weight = nn.Parameter(weight.detach().clone())
        return layer

    def forward(
        self,
        x: Float[Tensor, "..."],
        context: Float[Tensor, "..."] | None = None,
        values: Float[Tensor, "..."] | None = None,
        *,
        mask: Bool[Tensor, "..."] | Mask | None = None,
        bias: Float[Tensor, "..."] | None = None,
        causal: bool = False,
        window: tuple[int | None, int | None] | None = None,
        positions: Int[Tensor, "*B L"] | None = None,
        cache: KeyValueCache | None = None,
        return_attention: bool = False,
    ) -> Float[Tensor, "..."] | tuple[Float[Tensor, "..."], AttentionMap]:
        """Compute attention from x to context, or to x itself.

        Args:
            x: input of the queries, (B, L, d_model) or (L, d_model).
            context: input of the keys, (B, S, d_context). Default: x.
            values: input of the values, (B, S, d_context). Default: the context.
            mask, bias, causal, window: as in `regard.attend`. True means "may attend".
            positions: of x's tokens, (L,) or (B, L). Default: continue those in the cache. Positions of a context
                start at 0.
            cache: keys and values of the tokens before x. Those of x are appended. Self-attention only.
            return_attention: also return the map.

        Raises:
            TypeError, ValueError: an argument is wrong. The message gives its name, its value and the expected value.
        """
        is_self = context is None
        if cache is not None and not is_self:
            raise ValueError("cache: works for self-attention only: leave out context")
        context = x if context is None else context
        values = context if values is None else values
        check_layer_input("x", x, self.query.in_features)
        check_layer_input("context", context, self.key.in_features, x)
        check_layer_input("values", values, self.value.in_features, x)
        if values.shape[-2] != context.shape[-2]:
            raise ValueError(f"values: got {values.shape[-2]} tokens, expected {context.shape[-2]}, like the context")
        if positions is None:
            start = 0 if cache is None else len(cache)
            positions = torch.arange(start, start + x.shape[-2], device=x.device)
        elif positions.shape not in (x.shape[:-1], x.shape[-2:-1]):
            needed = f"({x.shape[-2]},) or {tuple(x.shape[:-1])}"
            raise ValueError(f"positions: got shape {tuple(positions.shape)}, expected {needed}")
        key_positions = positions if is_self else torch.arange(context.shape[-2], device=context.device)
        query = self.query(x).unflatten(-1, (self.heads, self.d_k)).transpose(-3, -2)  # (…, H, L, d_k)
        key = self.key(context).unflatten(-1, (self.key_heads, self.d_k)).transpose(-3, -2)  # (…, G, S, d_k)
        value = self.value(values).unflatten(-1, (self.key_heads, self.d_v)).transpose(-3, -2)  # (…, G, S, d_v)
        if self.positions is not None:
            query, key = self.positions.rotate(query, positions), self.positions.rotate(key, key_positions)
        if cache is not None:
            key, value, key_positions = cache.append(key, value, key_positions)
        if self.positions is not None:
            if self.positions.causal_only and not causal:
                raise ValueError("causal: got False, expected True: the bias of these positions is causal")
            by_position = self.positions.bias(positions, key_positions)
            bias = by_position if bias is None else bias if by_position is None else bias + by_position
        with scope(self.path) if self.path else _no_scope:
            result = attend(
                query,
                key,
                value,
                mask=mask,
                bias=bias,
                causal=causal,
                window=window,
                offset=key.shape[-2] - query.shape[-2] if is_self else None,
                scale=self.scale,
                softcap=self.softcap,
                dropout=self.dropout if self.training else 0.0,
            )
        context, weights = result.output.transpose(-3, -2).flatten(-2), result.weights  # (…, L, H · d_v)
        del result  # free the output, which is large for long texts and was copied
        output = self.output(context)
        return (output, weights) if return_attention else output
