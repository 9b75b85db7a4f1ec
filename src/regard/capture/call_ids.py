"""Which of a trace's attention a call is, known while the model runs, so that cuts mean the maps that a trace shows.

Modules cannot say it: ALBERT calls one for every layer, DiffLlama makes two calls a layer, and in a hybrid some layers
make none. Calls are counted as they come instead, as traces count them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from regard.capture.hf_attention import Capture
from regard.capture.hidden_states import LayerStack
from regard.capture.interventions import PARTS

ALONE = "attention"  # the only part of a model that reads one sequence


class Numbering:
    """Names the calls of one forward pass for cuts: "attention.3" is the call that becomes `trace.attention[3]`.

    Of an encoder-decoder "encoder.3" and "decoder.3" are its encoder's and decoder's `attention[3]`, "cross.3" is
    `decoder.cross[3]`. A call outside the layers that a trace shows has an empty name, which no cut means.
    """

    def __init__(self, model: nn.Module, watch: Capture, *, pairs: bool) -> None:
        self._watch, self._pairs = watch, pairs
        self._items = _items(model)
        self._stacks: list[str] = []  # in the order of their first calls
        self.names: dict[tuple[str, int], str] = {}
        self.counts: dict[str, int] = dict.fromkeys(PARTS if pairs else (ALONE,), 0)

    def __call__(self, path: str, nth: int) -> str:
        """The name of the n-th call of a path. Calls have to be asked for in the order in which they are made."""
        if (path, nth) not in self.names:
            part = self._part(path)
            self.names[path, nth] = f"{part}.{self.counts[part]}" if part else ""
            if part:
                self.counts[part] += 1
        return self.names[path, nth]

    def agrees(self, stacks: Mapping[str, LayerStack]) -> bool:
        """Whether the trace numbers these calls in the same way, now that all that it goes by is known."""
        if self._pairs:
            shown = list(stacks)
        else:
            shown = [max(stacks.values(), key=lambda each: each.count).path] if stacks else []
        found = self._stacks[: 2 if self._pairs else 1]
        return found == shown and all(
            name.partition(".")[0] == self._part(path) for (path, _), name in self.names.items()
        )

    def _part(self, path: str) -> str:
        """The part that a call of this path belongs to; empty for none."""
        stack = next((item.rpartition(".")[0] for item in _above(path) if item in self._items), None)
        if stack is None:
            return ""
        if stack not in self._stacks:
            self._stacks.append(stack)
        place = self._stacks.index(stack)
        if not self._pairs:
            return ALONE if place == 0 else ""
        if place == 1 and (path in self._watch.across or path in self._crossing()):
            return "cross"
        return ("encoder", "decoder", "")[min(place, 2)]

    def _crossing(self) -> set[str]:
        return {self._watch.paths[number] for number in self._watch.crossing if number in self._watch.paths}


@dataclass(frozen=True)
class Known:
    """The names that the calls of an earlier pass had, for one in which some of them are not made."""

    names: Mapping[tuple[str, int], str]
    counts: Mapping[str, int]

    @staticmethod
    def of(numbers: "Numbering | Known") -> "Known":
        """The names that calls were given so far."""
        return Known(dict(numbers.names), dict(numbers.counts))

    def __call__(self, path: str, nth: int) -> str:
        """The name of the n-th call of a path."""
        return self.names[path, nth]

    def agrees(self, _stacks: Mapping[str, LayerStack]) -> bool:
        """Whether a trace numbers these calls in the same way: it did."""
        return True


def _items(model: nn.Module) -> frozenset[str]:
    """The paths of the items of all lists of modules: what watched layers are."""
    lists = {path: module for path, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    return frozenset(f"{path}.{n}" if path else str(n) for path, module in lists.items() for n in range(len(module)))


def _above(path: str) -> list[str]:
    """The paths of the modules around one, the outermost first, itself last."""
    names = path.split(".")
    return [".".join(names[:n]) for n in range(1, len(names) + 1)]
