"""Layers of a file that holds only some."""

from typing import Any

from regard.errors import RegardError
from regard.trace.file_choice import listed
from regard.trace.layer_subset import LayerSubset


class Saved(LayerSubset[Any]):
    """What belongs to layers, numbered as in the model, where only some were saved: the others are refused by name."""

    def __getitem__(self, number: Any) -> Any:
        if not isinstance(number, slice):
            place = range(len(self))[number]
            if place not in self.kept:
                raise RegardError(f"{self._what} {place} was not saved: the file holds {listed(self._what, self.kept)}")
        return super().__getitem__(number)
