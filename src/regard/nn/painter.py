"""A model that paints what a line of words says: flow matching on the pixels, words told by cross-attention.

From a picture that is part noise it tells the picture behind the noise (Lipman et al. 2023, "Flow Matching for
Generative Modeling"; the clean picture is what is learned, as of Ho et al. 2020's three choices the one without a
weight). Patches attend to each other, then to the words, in every layer (Rombach et al. 2022).

Shapes: n pictures, R rows and columns of pixels, P patches, L words, M model width.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.nn.layer import norm_of, stack
from regard.nn.linear import Linear
from regard.nn.painter_config import PainterConfig

WAVES, SLOWEST = 32, 10_000.0  # of the time: as many sines and cosines, each slower than the one before
ENCODER = 2  # layers that read the words


class Painter(nn.Module):
    """Noisy pictures, times and words in, the pictures expected behind the noise out; its calls can be recorded.

    Recorded are "words.0.attention" and on, "painter.0.attention" and "painter.0.cross" and on.
    """

    def __init__(self, config: PainterConfig) -> None:
        super().__init__()
        self.config = config
        width, stacked = config.d_model, config.stack(config.layers)
        # Places begin as large as what they are added to: at the usual 0.02 training stays on a plateau for
        # thousands of steps. nn.Embedding begins at 1.
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.place = nn.Parameter(torch.randn(config.length, width))
        self.words = stack(config.stack(ENCODER), "words", causal=False, crossing=False)
        self.words_norm = norm_of(stacked)
        self.patch = Linear(config.patch**2, width)
        self.row = nn.Parameter(torch.randn(config.grid, width) / math.sqrt(2))
        self.column = nn.Parameter(torch.randn(config.grid, width) / math.sqrt(2))
        self.time = nn.Sequential(Linear(2 * WAVES, width), nn.SiLU(), Linear(width, width))
        self.painter = stack(stacked, "painter", causal=False, crossing=True)
        self.norm = norm_of(stacked)
        self.output = Linear(width, config.patch**2)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.place.device

    def forward(
        self,
        noisy: Float[Tensor, "n R R"],
        time: Float[Tensor, " n"],
        words: Int[Tensor, "n L"],
        *,
        keys: Int[Tensor, " L"] | None = None,
        may: Bool[Tensor, " L"] | None = None,
    ) -> Float[Tensor, "n R R"]:
        """Tell the picture behind the noise.

        Args:
            noisy: (1 - time) · noise + time · picture.
            time: 0 where all is noise, 1 where nothing is.
            words: ids.
            keys: whose key each word has, by place; its own by default. Values stay: with two exchanged, each of the
                two words is found where the other was.
            may: which words may be attended to; False cuts a word's edges, and the others share its weight.
        """
        plain = self.embedding(words)
        states = plain + self.place
        for layer in self.words:
            states = layer(states)
        states = self.words_norm(states)  # (n, L, M): what a word means in this line: whose place it is
        values = plain if self.config.values == "plain" else states
        states = states if keys is None else states[:, keys]
        places = (self.row[:, None] + self.column).flatten(0, 1)  # (P, M)
        x = self.patch(patches(noisy, self.config.grid)) + places + self.time(_waves(time))[:, None]
        for layer in self.painter:
            x = layer(x, states, values, context_mask=None if may is None else may[None, None, None])
        return joined(self.output(self.norm(x)))


def patches(pictures: Float[Tensor, "n R R"], grid: int) -> Float[Tensor, "n P pixels"]:
    """Cut pictures into grid · grid patches, row by row, each a row of its pixels."""
    size = pictures.shape[-1] // grid
    cut = pictures.unflatten(1, (grid, size)).unflatten(3, (grid, size))  # (n, grid, size, grid, size)
    return cut.transpose(2, 3).flatten(3).flatten(1, 2)


def joined(cut: Float[Tensor, "n P pixels"]) -> Float[Tensor, "n R R"]:
    """Put together what `patches` cut."""
    grid, size = math.isqrt(cut.shape[1]), math.isqrt(cut.shape[2])
    return cut.unflatten(1, (grid, grid)).unflatten(3, (size, size)).transpose(2, 3).flatten(3).flatten(1, 2)


def _waves(time: Float[Tensor, " n"]) -> Float[Tensor, "n waves"]:
    """Sines and cosines of a time, as those of positions (Vaswani et al. 2017), of a thousand to the unit."""
    angles = 1000 * time[:, None] / SLOWEST ** (torch.arange(WAVES, device=time.device) / WAVES)
    return torch.cat([angles.sin(), angles.cos()], -1)
