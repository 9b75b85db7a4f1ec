"""What a painter is made of: one frozen description, checked when it is made, kept as JSON; without torch."""

from dataclasses import dataclass
from typing import Literal, get_type_hints

from regard.checks import kind_needed
from regard.errors import RegardError
from regard.nn.config import KeptConfig, TransformerConfig

FORMAT = "painter"


@dataclass(frozen=True, kw_only=True)
class PainterConfig(KeptConfig):
    """What a `Painter` is made of.

    vocabulary, length: how many words there are, and how many a line has (L). side: rows and columns of a picture.
    patch: rows and columns of a patch. layers: of the painter's stack; the words' has 2. d_model, heads: of both.
    values: what cross-attention carries: "plain" embeddings of the words, which know nothing of each other, or
        "contextual" ones, the encoder's states, as in Stable Diffusion. Keys are the encoder's states in both.
    """

    vocabulary: int
    length: int
    side: int = 16
    patch: int = 4
    layers: int = 3
    d_model: int = 64
    heads: int = 2
    values: Literal["plain", "contextual"] = "plain"

    form, entire = FORMAT, True

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            given = getattr(self, name)
            if needed := kind_needed(given, kind):
                raise RegardError(f"{name}: given {given!r}, needs {needed}")
            if isinstance(given, int) and given < 1:
                raise RegardError(f"{name}: given {given}, needs 1 or more")
        if self.side % self.patch:
            raise RegardError(f"patch: given {self.patch}, needs a size that divides the {self.side} pixels of a side")
        self.stack(self.layers)  # what a transformer's config refuses is refused here

    @property
    def grid(self) -> int:
        """Patches of a row, and of a column."""
        return self.side // self.patch

    def stack(self, layers: int) -> TransformerConfig:
        """Describe one of the two stacks, in a transformer's terms."""
        return TransformerConfig(
            vocabulary=self.vocabulary, kind="encoder", layers=layers, d_model=self.d_model, heads=self.heads,
            positions="none", output="none",
        )  # fmt: skip
