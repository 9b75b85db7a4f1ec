"""What --save and the options beside it ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.checks import check_saving
from regard.errors import RegardError


@dataclass(frozen=True)
class Saving:
    """A file for traces, and what of them goes into it: some layers and heads, as narrower numbers, with blocks."""

    file: Path | None
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    dtype: str | None = None
    attention_outputs: bool = False

    def check(self) -> None:
        """What can be refused before a model is loaded."""
        chosen = {
            "layers": self.layers,
            "heads": self.heads,
            "dtype": self.dtype,
            "attention_outputs": self.attention_outputs or None,
        }
        given = [f"--save-{name}" for name, value in chosen.items() if value is not None]
        if given and self.file is None:
            raise RegardError(f"{given[0]} needs --save: it says what of the traces goes into that file")
        check_saving(self.dtype, self.attention_outputs, self.heads)

    def write(self, traces: Sequence[Any]) -> None:
        """Write the file, where one was asked for; a trace alone as one trace."""
        if self.file is None:
            return
        from regard.trace.file import save

        save(
            list(traces),
            self.file,
            layers=self.layers,
            heads=self.heads,
            dtype=self.dtype,
            attention_outputs=self.attention_outputs,
        )
