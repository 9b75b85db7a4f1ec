"""Define ablations of a forward pass, `interventions=[ablate(head(3, 5)), ...]`, and number its attention calls.

`head` and `edge` name a part of a model's attention, and `ablate` ablates it. Interventions are applied in list
order.

Module paths can't identify calls: ALBERT calls one module for every layer, DiffLlama makes two calls per layer, and
some layers of a hybrid make none. A call belongs to the layer that is running, as traces number layers.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, overload

from torch import nn

from regard.attention.ablation import EdgeAblation, HeadAblation
from regard.capture.state import Capture, LayerStack, shown_stacks
from regard.checks import arguments_named, chosen_numbers, is_whole
from regard.errors import RegardError
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.words import Place, Word, find_word, is_word, only_word

Places = tuple[Place, ...]

MAX_LISTED_PLACES = 8  # maximum number of positions that a status lists
Part = Literal["encoder", "decoder", "cross"]
PARTS: tuple[Part, ...] = get_args(Part)
STACKS: tuple[Part, ...] = ("encoder", "decoder")  # the stacks of layers of an encoder-decoder
OF: dict[Part | None, str] = {
    None: "",
    "encoder": " of the encoder",
    "decoder": " of the decoder",
    "cross": " of the cross-attention",
}
PLURALS = {"head": "heads", "query": "queries", "key": "keys"}
TEXTS: dict[Part | None, str] = {None: "text", "encoder": "source", "decoder": "target"}  # the texts of the queries


@dataclass(frozen=True)
class Head:
    """A head of a layer. part: for an encoder-decoder, "encoder", "decoder" or "cross".

    nth: the number of the call if a layer makes several, None for all of them.
    """

    layer: int
    head: int
    part: Part | None = None
    nth: int | None = None

    def __str__(self) -> str:
        call = "" if self.nth is None else f", call {self.nth}"
        return f"head {self.head} of layer {self.layer}{OF[self.part]}{call}"


@dataclass(frozen=True)
class Edge:
    """The attention from one word or token to another. layers, heads: None for all.

    part: for an encoder-decoder. "encoder": both words are in the text. "decoder": both are in the target. "cross":
    the query is in the target and the key in the text.
    """

    query: Place
    key: Place
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    part: Part | None = None

    def __str__(self) -> str:
        where = "all layers" if self.layers is None else f"layers {', '.join(map(str, self.layers))}"
        heads = "" if self.heads is None else f", heads {', '.join(map(str, self.heads))}"
        query, key = named_place(self.query), named_place(self.key)
        return f"the edge from {query} to {key} in {where}{OF[self.part]}{heads}"


@dataclass(frozen=True)
class Ablate:
    """An ablation, as returned by `ablate`. It sets a head's output to zero or an edge's score to -inf."""

    target: Head | Edge

    def __str__(self) -> str:
        return f"ablated: {self.target}"


@overload
def ablate(target: Head | Edge) -> Ablate: ...
@overload
def ablate(target: str, *, head: int = ..., query: int = ..., key: int = ...) -> HeadAblation | EdgeAblation: ...
@arguments_named
def ablate(target: Head | Edge | str, **indices: int) -> Ablate | HeadAblation | EdgeAblation:
    """Ablate a head, which sets its output to zero, or an edge, which leaves it out of the softmax.

    For `model.trace(text, interventions=[...])`. The weight of an ablated edge goes to the remaining keys and sinks. A
    query without any key has output and weights 0. An ablated head keeps its weights.

    Args:
        target: `regard.head(...)` or `regard.edge(...)`. For `regard.watch`, the path of an attention module, such as
            "blocks.3.attn", or of a module that contains it.
        indices: only with a path: head, query and key, each a number from 0. Default: all. query and key select edges.

    Raises:
        RegardError: target is something else, or indices are passed without a path.
    """
    if isinstance(target, str) and indices.keys() <= PLURALS.keys():
        numbers: Any = {PLURALS[name]: [check_number(name, number)] for name, number in indices.items()}
        kind = HeadAblation if indices.keys() <= {"head"} else EdgeAblation
        return kind(layers=[target], **numbers)
    if indices:
        raise RegardError("ablate: pass head, query and key after a path: ablate('blocks.3.attn', head=5)")
    if not isinstance(target, (Head, Edge)):
        raise RegardError(f"ablate: got {type(target).__name__}, expected regard.head(...) or regard.edge(...)")
    return Ablate(target)


@arguments_named
def head(layer: int, head: int, *, part: Part | None = None, nth: int | None = None) -> Head:
    """Select a head of a layer. Layers and heads are counted from 0, as in `trace.attention`.

    part: for an encoder-decoder, "encoder" or "decoder" (self-attention), or "cross", numbered as `decoder.cross`.
    nth: the number of the call, from 0, if a layer makes several (DiffLlama). None for all of them.

    Raises:
        RegardError: the layer or head isn't a number of 0 or more, or the part doesn't exist.
    """
    check_intervention_part(part)
    nth = None if nth is None else check_number("nth", nth)
    return Head(check_number("layer", layer), check_number("head", head), part, nth)


@arguments_named
def edge(
    query: Place,
    key: Place,
    *,
    layers: int | Collection[int] | None = None,
    heads: int | Collection[int] | None = None,
    part: Part | None = None,
) -> Edge:
    """Select the edge from one word to another. Pass words (for all their occurrences), occurrences, or token numbers.

    layers, heads, part: as in `head`. Default: all layers and heads. In "cross", the query is a word of the target and
    the key is a word of the text.

    Raises:
        RegardError: a layer or head isn't a number of 0 or more, or the part doesn't exist.
    """
    check_intervention_part(part)
    return Edge(query, key, chosen_numbers("layer", layers), chosen_numbers("head", heads), part)


def check_intervention_part(part: object, needs: Collection[Part] = PARTS) -> None:
    """Check that a part is None or one of those allowed."""
    if part is not None and part not in needs:
        raise RegardError(f"part: got {part!r}, expected one of {', '.join(map(repr, needs))}")


def check_number(name: str, value: object) -> int:
    """Return a number after checking that it is an integer of 0 or more. name: for the error message."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RegardError(f"{name}: got {value!r}, expected a number of 0 or more")
    return value


def places_of_intervention(name: str, value: Any) -> Places | None:
    """Convert an argument, a position or a list of positions, to a tuple. None means all positions."""
    if value is None:
        return None
    positions = list(value) if isinstance(value, (list, range, set)) else [value]
    if isinstance(value, tuple) and not is_word(value):
        positions = list(value)
    if not positions:
        raise RegardError(f"{name}: got none, expected at least one position, or None for all")
    for position in positions:
        if not is_word(position) and (not is_whole(position) or int(position) < 0):
            needs = 'a word, an occurrence such as ("bank", 1), the number of a token, or a list of these'
            raise RegardError(f"{name}: got {position!r}, expected {needs}")
    return tuple(positions)


def tokens_at(name: str, text: str, tokens: Sequence[Token], positions: Places | None) -> tuple[int, ...]:
    """Return the token numbers at positions of a text, in order. A word means all its occurrences.

    name: the argument's name for error messages.
    """
    if positions is None:
        return tuple(range(len(tokens)))
    numbers: list[int] = []
    for entry in positions:
        if isinstance(entry, (str, Word, tuple)):
            words = find_word(text, tokens, entry) if isinstance(entry, str) else [only_word(text, tokens, entry)]
            numbers += sorted({token for word in words for token in word.tokens})
        elif not 0 <= int(entry) < len(tokens):
            raise RegardError(f"{name}: token {entry} is out of range, the text has tokens 0 to {len(tokens) - 1}")
        else:
            numbers.append(int(entry))
    if len(set(numbers)) < len(numbers):
        raise RegardError(f"{name}: names token {next(n for n in numbers if numbers.count(n) > 1)} twice")
    return tuple(numbers)


def written(positions: Places | None) -> str:
    """Describe the positions of an intervention in a status: "all positions", "token 3", “bank”."""
    if positions is None:
        return "all positions"
    if len(positions) > MAX_LISTED_PLACES:
        return f"{len(positions)} places"
    return ", ".join(f"token {position}" if is_whole(position) else named_place(position) for position in positions)


def named_place(entry: Place) -> str:
    """Describe a position in a sentence: “bank”, “bank” (occurrence 1), or a token number."""
    if isinstance(entry, tuple):
        return f"{quoted(entry[0])} (occurrence {entry[1]})"
    return str(entry) if is_whole(entry) else quoted(entry.text if isinstance(entry, Word) else str(entry))


Recorded = tuple[str, int]  # (path of the module, n-th call of that path), as in `record`


@dataclass(frozen=True)
class CallId:
    """One attention call of a forward pass.

    part: for an encoder-decoder, else None. layer: the number of the layer that makes the call. nth: the number of the
    call in the layer. A trace has it as `trace.attention[layer, nth]` or `decoder.cross[layer, nth]`.
    """

    part: Part | None
    layer: int
    nth: int = 0


CallIds = Mapping[Recorded, CallId | None]


class CallNumbering:
    """Number the attention calls of a forward pass. Calls outside the layers that a trace shows have the id None.

    ids: of the calls so far. known: the ids of an earlier, checked pass, if this pass makes some of the same calls.
    """

    def __init__(self, model: nn.Module, capture: Capture, *, pairs: bool, known: CallIds | None = None) -> None:
        self._capture, self._pairs, self._known = capture, pairs, known
        lists = {path: module for path, module in model.named_modules() if isinstance(module, nn.ModuleList)}
        items = ((path, n) for path, module in lists.items() for n in range(len(module)))
        self._items = {f"{path}.{n}" if path else str(n) for path, n in items}  # these include all layers
        self._stacks: list[str] = []  # paths, in the order of their first calls
        self.ids: dict[Recorded, CallId | None] = {}
        self._counts: Counter[tuple[Part | None, int]] = Counter()  # calls per (part, layer)

    def __call__(self, path: str, nth: int) -> CallId | None:
        """Return the id of a path's n-th call. Must be called during the attention call, while its layer runs."""
        if self._known is not None:
            return self._known[path, nth]
        if (path, nth) not in self.ids:
            shown, part = self._part(path)
            self.ids[path, nth] = None
            if shown and self._capture.layer is not None:
                _, layer = self._capture.layer
                self.ids[path, nth] = CallId(part, layer, self._counts[part, layer])
                self._counts[part, layer] += 1
        return self.ids[path, nth]

    def matches(self, stacks: Mapping[str, LayerStack]) -> bool:
        """Return whether the trace numbers these calls in the same way. Call this after the pass."""
        if self._known is not None:
            return True
        traced = [stack.path for stack in shown_stacks(stacks, pairs=self._pairs)]
        return self._stacks[: 2 if self._pairs else 1] == traced and all(
            self._part(path) == ((False, None) if call is None else (True, call.part))
            for (path, _), call in self.ids.items()
        )

    def _part(self, path: str) -> tuple[bool, Part | None]:
        """Return whether a trace shows the calls of this path, and their part."""
        names = path.split(".")
        above = [".".join(names[:n]) for n in range(1, len(names) + 1)]  # the enclosing modules, outermost first
        stack = next((item.rpartition(".")[0] for item in above if item in self._items), None)
        if stack is None:
            return False, None
        if stack not in self._stacks:
            self._stacks.append(stack)
        index = self._stacks.index(stack)
        if not self._pairs:
            return index == 0, None
        if index > 1:
            return False, None
        if index == 1 and path in self._capture.cross_paths:
            return True, "cross"
        return True, ("encoder", "decoder")[index]
