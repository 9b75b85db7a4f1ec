"""Positional encodings: added to the input, as a rotation of query and key, or as a bias on scores.

The functions come first, then modules with a common interface. An attention layer calls `rotate` and `bias` of its
`positions=` module. Each type of encoding implements one of the two.

Shapes: positions are (L,) for all texts, or (B, L). Angles are computed in float64, because float32 angles are off by
0.004 at position 100,000.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.checks import check_integer

LAYOUTS = ("half", "interleaved")


def sinusoidal(length: int, width: int, base: float = 10000.0) -> Float[Tensor, "{length} {width}"]:
    """Compute the encodings of positions 0 to length - 1 (Vaswani et al. 2017, "Attention Is All You Need").

    PE[pos, 2i] = sin(pos / base^(2i / width)), PE[pos, 2i + 1] = cos(same). An odd width drops the last column.
    The encoding at pos + k is a linear function of the encoding at pos, which rotates each pair by the angle of k.
    """
    return sinusoidal_at(torch.arange(length), width, base).float()


def sinusoidal_at(
    positions: Int[Tensor, "*positions"], width: int, base: float = 10000.0
) -> Float[Tensor, "*positions {width}"]:
    """Compute the sinusoidal encodings of the given positions in float64."""
    check_integer("width", width)
    even = width + width % 2
    exact = _exact_positions(positions)
    exponents = torch.arange(0, even, 2, dtype=exact.dtype, device=exact.device) / width
    angles = exact[..., None] / base**exponents  # (…, even / 2)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]


def rotary_angles(
    positions: Int[Tensor, "*positions"], width: int, base: float = 10000.0
) -> Float[Tensor, "*positions half"]:
    """Compute the rotation angles of pairs of components, position / base^(2i / width), in float64.

    Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".

    Raises:
        ValueError: width is odd. Components are rotated in pairs.
    """
    check_integer("width", width, 2)
    if width % 2:
        raise ValueError(f"width: got {width}, expected an even number: rotary positions rotate pairs")
    exact = _exact_positions(positions)
    return exact[..., None] * base ** -(torch.arange(0, width, 2, dtype=exact.dtype, device=exact.device) / width)


def rotate(
    x: Float[Tensor, "*rest L D"], angles: Float[Tensor, "*texts L half"], layout: str = "half"
) -> Float[Tensor, "*rest L D"]:
    """Rotate each pair of components of x by its angle, in float32 or better. The result has x's dtype.

    Args:
        x: queries or keys, (…, L, D).
        angles: from `rotary_angles`, broadcastable to x except for the last axis, of width w. Components after the
            first 2w stay unchanged.
        layout: the components of pair i. "half": i and i + width / 2 (GPT-NeoX, Llama). "interleaved": 2i and 2i + 1
            (RoFormer, GPT-J).

    Raises:
        ValueError: the layout is unknown, or the angles are for more components than x has.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout: got {layout!r}, expected {' or '.join(map(repr, LAYOUTS))}")
    if 2 * angles.shape[-1] > x.shape[-1]:
        raise ValueError(f"angles: got {angles.shape[-1]} for pairs, but x has only {x.shape[-1]} components")
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    return _rotate_first_pairs(x, angles.cos().to(dtype), angles.sin().to(dtype), layout)


def _rotate_first_pairs(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate the first pairs of components of x, in the dtype of the cosines and sines."""
    width, dtype = 2 * cos.shape[-1], cos.dtype
    turned, rest = x[..., :width].to(dtype), x[..., width:]
    if layout == "half":
        a, b = turned.chunk(2, -1)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = turned[..., 0::2], turned[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    return torch.cat([turned.to(x.dtype), rest], -1) if rest.shape[-1] else turned.to(x.dtype)


def alibi_slopes(heads: int) -> Float[Tensor, " {heads}"]:
    """Return the slope of each head's scores over distance (Press et al. 2022, "Train Short, Test Long").

    For a power of two, slopes are a geometric sequence with first term and ratio 2^(-8 / heads). Other numbers use the
    slopes of the next lower power, then every second slope of the next higher power, as in the authors' code.
    """
    check_integer("heads", heads)
    below = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * n / below) for n in range(1, below + 1)]
    slopes += [2 ** (-4 * n / below) for n in range(1, 2 * (heads - below), 2)]
    return torch.tensor(slopes)


def alibi_bias(
    slopes: Float[Tensor, " H"], queries: Int[Tensor, "*texts L"], keys: Int[Tensor, "*texts S"]
) -> Float[Tensor, "*texts H L S"]:
    """Compute -slope · |i - j| for all heads, queries and keys. Exact at any distance, but as large as the scores."""
    gaps = (queries[..., :, None] - keys[..., None, :]).abs()
    return -slopes[:, None, None] * gaps[..., None, :, :]


def _alibi_key_bias(slopes: Float[Tensor, " H"], keys: Int[Tensor, "*texts S"]) -> Float[Tensor, "*texts H 1 S"]:
    """Compute slope · (j - last key), S numbers per head. With a causal mask, it has the same effect as `alibi_bias`.

    For keys up to the query, the two differ by slope · (last key - i), which is constant in a row, so softmax
    cancels it. Only rounding differs: biases reach slope · S, where float32 has steps of slope · S · 1.2e-7.
    """
    last = keys.amax(-1, keepdim=True) if keys.shape[-1] else keys
    return slopes[:, None, None] * (keys - last)[..., None, None, :]


class Positions(nn.Module):
    """The interface of positional encodings inside attention. This base class doesn't use positions."""

    causal_only = False  # True if the bias is only correct with a causal mask

    def rotate(self, x: Float[Tensor, "*B H L D"], positions: Int[Tensor, "*b L"]) -> Float[Tensor, "*B H L D"]:
        """Rotate queries or keys by their positions."""
        return x

    def bias(self, queries: Int[Tensor, "*b L"], keys: Int[Tensor, "*c S"]) -> Float[Tensor, "..."] | None:
        """Return the bias on the scores, broadcastable to (B, H, L, S), or None."""
        return None


class Rotary(Positions):
    """Rotate queries and keys by position, so that scores depend on relative positions. Values stay unchanged."""

    def __init__(self, width: int, base: float = 10000.0, layout: str = "half") -> None:
        """width: the number of rotated components of a query or key, at most D. layout: as in `rotate`."""
        super().__init__()
        rotate(torch.zeros(1, width), rotary_angles(torch.arange(1), width, base), layout)  # raises for wrong arguments
        self.width, self.base, self.layout = width, base, layout
        self._last: tuple[Tensor, int, Tensor, Tensor] | None = None

    def extra_repr(self) -> str:
        """Return what print(module) shows."""
        return f"{self.width}, base={self.base}, layout={self.layout!r}"

    def rotate(self, x: Float[Tensor, "*B H L D"], positions: Int[Tensor, "*b L"]) -> Float[Tensor, "*B H L D"]:
        """Rotate x by the angles of its positions, which are the same for all heads."""
        if self.width > x.shape[-1]:
            raise ValueError(f"x: got {x.shape[-1]} components, expected at least the {self.width} that are rotated")
        return _rotate_first_pairs(x, *self._turns(positions, x.dtype), self.layout)

    def _turns(self, positions: Tensor, like: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the cosines and sines of positions, (…, 1, L, width / 2).

        All layers of a model use the same positions for queries and keys. So the last result is cached and returned if
        called again with the same, unchanged tensor.
        """
        dtype = torch.float64 if like == torch.float64 else torch.float32
        version = -1 if positions.is_inference() else positions._version
        last = self._last
        if last is not None and last[0] is positions and last[1] == version and last[2].dtype == dtype:
            return last[2:]
        with torch.inference_mode(False), torch.no_grad():  # so that training can use them
            angles = rotary_angles(positions, self.width, self.base)[..., None, :, :]
            cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        if version >= 0:
            self._last = positions, version, cos, sin
        return cos, sin


class Alibi(Positions):
    """Lower the scores in proportion to distance, with a different slope per head."""

    def __init__(self, heads: int, *, compact: bool = False) -> None:
        """compact: use S numbers per head instead of L × S, with some rounding. Only for causal attention."""
        super().__init__()
        check_integer("heads", heads)
        self.heads, self.causal_only = heads, compact

    def extra_repr(self) -> str:
        """Return what print(module) shows."""
        return f"{self.heads}, compact={self.causal_only}"

    def bias(self, queries: Int[Tensor, "*b L"], keys: Int[Tensor, "*c S"]) -> Float[Tensor, "..."]:
        """Compute the bias of queries and keys, (H, L, S) or (B, H, L, S). If compact, the query axis has size 1."""
        slopes = alibi_slopes(self.heads).to(keys.device)  # not a buffer, which model.bfloat16() would round
        return _alibi_key_bias(slopes, keys) if self.causal_only else alibi_bias(slopes, queries, keys)


def _exact_positions(positions: Tensor) -> Tensor:
    return positions.to(torch.float32 if positions.device.type == "mps" else torch.float64)  # mps has no float64
