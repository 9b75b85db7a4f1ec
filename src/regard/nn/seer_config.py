"""What a model that reads pictures in its texts is made of: a decoder's config, and how pictures are cut; no torch."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal

from regard.errors import RegardError
from regard.nn.config import TransformerConfig

SEER, IMAGE = "seer", "<image>"  # what config.json says it is; the token that stands for a patch


@dataclass(frozen=True, kw_only=True)
class SeerConfig(TransformerConfig):
    """What a `Seer` is made of: a decoder with learned positions, and how it cuts pictures.

    side: rows and columns of a picture. patch: of a patch. image, asks: the ids of the tokens that stand for a patch
        and that end a question. values: whether patches are read by the latter alone, so that what it has of a patch
        is that patch's own ("plain"), or by all that stands behind them ("contextual").
    """

    output: Literal["tied", "free", "none"] = "free"
    initial: float = 0.1
    side: int = 16
    patch: int = 4
    image: int = 0
    asks: int = 0
    values: Literal["plain", "contextual"] = "plain"

    form = SEER

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kind, self.positions) != ("decoder", "learned"):
            raise RegardError(f"kind: given {self.kind!r}, {self.positions!r}; needs a decoder of learned positions")
        for name in ("image", "asks"):
            if not 0 <= getattr(self, name) < self.vocabulary:
                ids = f"an id of the vocabulary, 0 to {self.vocabulary - 1}"
                raise RegardError(f"{name}: given {getattr(self, name)}, needs to be {ids}")
        if self.patch < 1 or self.side < self.patch or self.side % self.patch:
            raise RegardError(f"patch: given {self.patch}, needs a size that divides the {self.side} pixels of a side")

    @property
    def grid(self) -> int:
        """Patches of a row, and of a column."""
        return self.side // self.patch

    @property
    def vision_config(self) -> SimpleNamespace:
        """How it cuts pictures, as configs of transformers say it."""
        return SimpleNamespace(patch_size=self.patch)
