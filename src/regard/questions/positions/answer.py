"""Hold what a positional encoding does to positions, and make it of a formula or of a model's own table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jaxtyping import Float
from torch import Tensor

from regard.display.answer import Answer
from regard.display.asked import Called
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.wording import capital
from regard.questions.positions import panels, sentences
from regard.questions.positions.encodings import (
    alike,
    encoding,
    learned_position_table,
    positions_per_rotary_turn,
    slopes,
)

if TYPE_CHECKING:
    from regard.models.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Answer):
    """The matrices of an encoding, as `regard.questions.positions.encodings` has them. model: whose table it is."""

    format: ClassVar[str] = "regard positions"
    findings = sentences.of_positions
    panels = panels.of_positions

    kind: str
    matrices: Float[Tensor, "n positions _"]
    model: str | None = None

    @property
    def names(self) -> list[str]:
        """What the matrices are called, in their order."""
        named = {"rotary": ["cosine", "sine"], "alibi": [f"head {n}" for n in range(len(self.matrices))]}
        return named.get(self.kind, ["vectors"])

    def title(self) -> str:
        """Say which encoding it is, and of how many positions and components."""
        rows, across = self.matrices.shape[1:]
        of = "" if self.model is None else f" of {self.model}"
        return capital(f"{self.kind} positions{of}, {rows} × {across}")

    def rows(self) -> list[Row]:
        """List one row a distance (how alike positions are), a pair (in how many positions it turns once) or a head."""
        if self.kind in ("sinusoidal", "learned"):
            return [{"distance": far, "cosine": cosine} for far, cosine in alike(self.matrices[0])]
        if self.matrices.shape[1] < 2:
            return []
        if self.kind == "rotary":
            return [{"pair": n, "one_turn_in": each} for n, each in enumerate(positions_per_rotary_turn(self.matrices))]
        return [{"head": n, "a_position": -each} for n, each in enumerate(slopes(self.matrices))]

    def data(self) -> dict[str, object]:
        """Give the rows, and the matrices by their names."""
        named = dict(zip(self.names, self.matrices.tolist(), strict=True))
        return {"kind": self.kind, "model": self.model, "rows": self.rows(), "matrices": named}


def positions(
    kind: str,
    length: int | None = None,
    width: int | None = None,
    model: "Model | None" = None,
    *,
    called: Called = str,
) -> Positions:
    """Look at an encoding: of 100 positions and 64 components where no numbers are given.

    Args:
        kind: sinusoidal, rotary, alibi, or learned, which is the table of model and has all of its components.
        model: whose table is shown, of kind learned alone.
        called: what messages call an argument.

    Raises:
        RegardError: no such kind, sizes that it cannot have, more than fits in memory, or a model without a table.
    """
    if kind == "learned":
        if model is None:
            raise RegardError(f"{called('kind')} learned: give the model whose table it is")
        return Positions(kind, learned_position_table(model, length, width, called=called), model.name)
    return Positions(kind, encoding(kind, length, width))
