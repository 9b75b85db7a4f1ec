"""Identify each attention call while the model runs, so that ablations mean the maps that a trace shows.

Module paths cannot identify calls: ALBERT calls one module for every layer, DiffLlama makes two calls a layer, and in a
hybrid some layers make none. A call belongs to the layer that runs when it is made, as traces number layers.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from regard.capture.interventions.names import Part
from regard.capture.state import Capture, LayerStack

Recorded = tuple[str, int]  # (path of the module, n-th call of it), as a record numbers calls


@dataclass(frozen=True)
class CallId:
    """One attention call of a forward pass.

    part: of an encoder-decoder, None for a model of one stack. layer: the number of the layer that makes it. nth: which
    of the layer's calls it is. A trace shows it as `trace.attention[layer, nth]`, or `decoder.cross[layer, nth]`.
    """

    part: Part | None
    layer: int
    nth: int = 0


class CallNumbering:
    """Gives the calls of one forward pass their ids. A call outside the layers that a trace shows has None.

    ids: of the calls made so far.
    """

    def __init__(self, model: nn.Module, capture: Capture, *, pairs: bool) -> None:
        self._capture, self._pairs = capture, pairs
        lists = {path: module for path, module in model.named_modules() if isinstance(module, nn.ModuleList)}
        items = ((path, n) for path, module in lists.items() for n in range(len(module)))
        self._items = {f"{path}.{n}" if path else str(n) for path, n in items}  # layers are among them
        self._stacks: list[str] = []  # in the order of their first calls
        self.ids: dict[Recorded, CallId | None] = {}
        self._counts: Counter[tuple[Part | None, int]] = Counter()  # of the calls of each part and layer

    def __call__(self, path: str, nth: int) -> CallId | None:
        """The id of the n-th call of a path. Each call has to be asked for while it is made, inside its layer."""
        if (path, nth) not in self.ids:
            shown, part = self._part(path)
            self.ids[path, nth] = None
            if shown and self._capture.layer is not None:
                _, layer = self._capture.layer
                self.ids[path, nth] = CallId(part, layer, self._counts[part, layer])
                self._counts[part, layer] += 1
        return self.ids[path, nth]

    def matches(self, stacks: Mapping[str, LayerStack]) -> bool:
        """Whether the trace numbers these calls in the same way, now that the pass is over and its stacks are known."""
        if self._pairs:
            traced = list(stacks)
        else:
            traced = [max(stacks.values(), key=lambda stack: stack.count).path] if stacks else []
        return self._stacks[: 2 if self._pairs else 1] == traced and all(
            self._part(path) == ((False, None) if call is None else (True, call.part))
            for (path, _), call in self.ids.items()
        )

    def _part(self, path: str) -> tuple[bool, Part | None]:
        """Whether a trace shows the calls of this path, and the part that they belong to."""
        names = path.split(".")
        above = [".".join(names[:n]) for n in range(1, len(names) + 1)]  # the modules around it, the outermost first
        stack = next((item.rpartition(".")[0] for item in above if item in self._items), None)
        if stack is None:
            return False, None
        if stack not in self._stacks:
            self._stacks.append(stack)
        place = self._stacks.index(stack)
        if not self._pairs:
            return place == 0, None
        if place > 1:
            return False, None
        if place == 1 and self._crosses(path):
            return True, "cross"
        return True, ("encoder", "decoder")[place]

    def _crosses(self, path: str) -> bool:
        """Whether calls of this path are known so far to take keys from another sequence."""
        return path in self._capture.cross_paths


@dataclass(frozen=True)
class KnownCallIds:
    """The ids that the calls of an earlier pass had, for a pass in which some of them are not made."""

    ids: Mapping[Recorded, CallId | None]

    @staticmethod
    def of(numbering: "CallNumbering | KnownCallIds") -> "KnownCallIds":
        """A copy of the ids that calls were given so far."""
        return KnownCallIds(dict(numbering.ids))

    def __call__(self, path: str, nth: int) -> CallId | None:
        """The id of the n-th call of a path."""
        return self.ids[path, nth]

    def matches(self, _stacks: Mapping[str, LayerStack]) -> bool:
        """True: the earlier pass was checked."""
        return True
