"""Hold how much every place of a picture looks at every word of its text, per step, layer and head.

Exact: the weights of cross-attention, or of the joint attention of picture and words, as the pipeline computed with
them. Layers have grids of their own; a mean over layers lays each on the finest, a coarse place over the fine ones
that it covers. (Tang et al. 2023, "What the DAAM: Interpreting Stable Diffusion Using Cross Attention", sum heat as
well, of grids that they smooth.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import from_zero
from regard.diffusion.prompt import Prompt, PromptWord
from regard.errors import RegardError
from regard.text.words import find_word


@dataclass(frozen=True)
class HeatLayer:
    """An attention module whose queries are places of the picture: its path, its heads, and the grid of the places."""

    path: str
    heads: int
    grid: tuple[int, int]


@dataclass
class PromptHeat:
    """The weights from a picture to the words of its text.

    layers: in the order in which they run. weights: of each step and layer (n pictures, H heads, rows, columns, W + 1):
    of each token of the prompt, and last of all padding; H is 1 where the mean of heads was kept. The weights of a
    place sum to 1, or, where picture and words are one sequence, to what words get of it. others: attention modules
    that have no words among their keys, or others beside them. beside: of the layers those that look at something else
    as well, in a call of its own, as an IP-adapter has them look at a picture. guided: whether texts without the words
    ran as well.
    """

    prompt: Prompt = field(default=Prompt("", (), (), 0))
    layers: list[HeatLayer] = field(default_factory=list)
    weights: list[list[Float[Tensor, "n H rows columns W"]]] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    guided: bool = False

    @property
    def grid(self) -> tuple[int, int]:
        """Return the rows and columns of the finest grid."""
        return max((layer.grid for layer in self.layers), key=lambda grid: grid[0] * grid[1])

    def word(self, text: str) -> PromptWord:
        """Find a word of the text."""
        by_name = [word for word in self.prompt.words if word.name == text]
        if by_name:
            return by_name[0]
        occurrences = find_word(self.prompt.text, self.prompt.tokens, text)
        if len(occurrences) > 1:
            tokens = {*occurrences[0].tokens, *occurrences[1].tokens}
            names = ", ".join(repr(word.name) for word in self.prompt.words if tokens & {*word.tokens})
            raise RegardError(f"word {text!r} occurs {len(occurrences)} times: needs one of {names}")
        return PromptWord(occurrences[0].text, occurrences[0].tokens)

    def of(
        self, word: str | PromptWord, *, step: int | None = None, layer: int | None = None, head: int | None = None
    ) -> Float[Tensor, "n rows columns"]:
        """Compute the heat of a word, all its tokens together, on each picture.

        step, layer, head: one of them; None for the mean of all. Of one layer in its own grid, else in the finest.
        """
        tokens = list((self.word(word) if isinstance(word, str) else word).tokens)
        return self.mean(tokens, step=step, layer=layer, head=head)

    def mean(
        self, tokens: Sequence[int], *, step: int | None = None, layer: int | None = None, head: int | None = None
    ) -> Float[Tensor, "n rows columns"]:
        """Compute the heat of tokens together as `of` does of a word's; token number W is all padding."""
        steps = range(len(self.weights)) if step is None else [from_zero("step", step, len(self.weights), "there are")]
        numbers = range(len(self.layers)) if layer is None else [from_zero("layer", layer, len(self.layers), "it has")]
        rows, columns = self.grid if layer is None else self.layers[numbers[0]].grid
        total = torch.zeros(len(self.weights[0][0]), rows, columns, dtype=torch.float64)
        for number in numbers:
            at: slice | list[int] = slice(None)
            if head is not None:
                size, own_layer = self.weights[0][number].shape[1], self.layers[number]
                if size != own_layer.heads:
                    raise RegardError("head: the mean of heads alone was kept, needs heads=True")
                at = [from_zero("head", head, size, f"layer {number} ({own_layer.path}) has")]
            for n in steps:
                of_word = self.weights[n][number][:, at][..., list(tokens)].sum(-1).double().mean(1)
                # a fine place has the number of the coarse one that it lies in
                down = torch.arange(rows) * of_word.shape[1] // rows
                across = torch.arange(columns) * of_word.shape[2] // columns
                total += of_word[:, down][:, :, across]
        return (total / (len(numbers) * len(steps))).float()
