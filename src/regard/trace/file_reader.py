"""From a description and tensors to traces. Every shape is held against the others before anything is read."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.attention import map_file
from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.tensor_files import Opened, exactly, typed, whole_number
from regard.tensor_files.values import short
from regard.text.tokens import Spelled, Token
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.file_checks import Fit
from regard.trace.file_layers import Saved
from regard.trace.file_outputs import rebuild_output
from regard.trace.file_values import names as spellings
from regard.trace.file_values import status, token
from regard.trace.file_writer import VECTORS
from regard.trace.trace import PairTrace, Status, Trace

PARTS = ("text", "names", "tokens", "vectors", "hidden_states", "attention", "cross", "status")
LAYER = ("layer", "map", "heads", "keys", "tensors", "value", "block")
MANY = 1 << 16  # layers, heads: more than any model has


def rebuild(told: Any, tensors: Mapping[str, Tensor], opened: Opened | None = None) -> Trace | PairTrace:
    """A trace or a pair from its description. opened: the file whose tensors these are; without it none is read.

    Raises:
        RegardError: a tensor is missing, or has another shape or dtype than the description tells, or a value is none
            that a trace can have, or is unknown.
    """
    kind = typed("what it holds", told, dict).get("kind")
    if kind == "pair":
        exactly("a pair", told, ("kind", "encoder", "decoder"))
        encoder = _trace(told["encoder"], tensors, opened)
        return PairTrace(encoder, _trace(told["decoder"], tensors, opened, len(encoder.tokens)))
    if kind != "trace":
        raise RegardError(f"it holds a {short(kind)}, needed is a trace or a pair")
    return _trace({name: value for name, value in told.items() if name != "kind"}, tensors, opened)


def _trace(told: Any, tensors: Mapping[str, Tensor], opened: Opened | None, across: int | None = None) -> Trace:
    """across: how many tokens the encoder has that this trace looks at, where that is known."""
    exactly("a trace", told, PARTS)
    text = typed("text", told["text"], str)
    tokens = tuple(Token(*token(n, each, text)) for n, each in enumerate(typed("tokens", told["tokens"], list)))
    fit = Fit(tensors, {"L": len(tokens)}, opened)
    spelled = spellings(told["names"])
    names = exactly("vectors", told["vectors"], ("contextual",), maybe=VECTORS)

    def vectors(name: str, shape: str, *, below: bool = False) -> Tensor | None:
        return fit.take(names[name], shape, below=below) if name in names else None

    # W, of the embedding parts, M, of the states, and K may differ: some models project behind one or before the other.
    embedded = {name: vectors(name, "L W") for name in ("learned", "positional", "segment", "input")}
    contextual, logits = fit.take(names["contextual"], "L K"), vectors("logits", "L V", below=True)
    exactly("hidden_states", told["hidden_states"], ("count", "held"))
    hidden_states: dict[int, Tensor] = {}
    for each in typed("the states", told["hidden_states"]["held"], list):
        if len(typed("a state", each, list)) != 2:
            raise RegardError(f"a state has {len(each)} values, needs its number and its tensor's name")
        hidden_states[_once("state", each[0], hidden_states)] = fit.take(each[1], "L M")
    attention, values, attention_outputs = _stack(told["attention"], fit, None)
    cross, cross_values, cross_attention_outputs = _stack(told["cross"], fit, across)
    return Trace(
        text=text,
        tokens=tokens,
        **embedded,
        hidden_states=_layers("state", told["hidden_states"]["count"], hidden_states),
        contextual=contextual,
        logits=logits,
        attention=attention,
        values=values,
        status=Status(**status(told["status"])),
        cross=cross,
        cross_values=cross_values,
        attention_outputs=attention_outputs,
        cross_attention_outputs=cross_attention_outputs,
        names=Spelled(spelled) if spelled else None,
    )


def _stack(told: Any, fit: Fit, across: int | None) -> tuple[Any, Any, Any]:
    """(maps, values, blocks) of one kind of attention, by layer."""
    exactly("attention", told, ("layers", "attention_outputs", "held"))
    maps: dict[int, AttentionMap] = {}
    values: dict[int, Tensor | None] = {}
    attention_outputs: dict[int, AttentionOutput | UnverifiedOutput] = {}
    around_them = typed("attention: blocks", told["attention_outputs"], bool)
    for layer in typed("the layers", told["held"], list):
        exactly("a layer", layer, LAYER)
        n = _once("layer", layer["layer"], maps)
        heads = whole_number(f"heads of layer {n}", layer["heads"], 1, MANY)
        keys = whole_number(f"keys of layer {n}", layer["keys"], 1, map_file.FURTHEST)
        if across is not None and keys != across:
            raise RegardError(f"layer {n} has {keys} keys, the other text has {across} tokens")
        inner = fit.within(H=heads, S=keys)
        maps[n] = _map(layer, inner)
        values[n] = None if layer["value"] is None else inner.take(layer["value"], "G S E")
        if around_them:
            attention_outputs[n] = rebuild_output(layer["block"], inner)
        elif layer["block"] is not None:
            raise RegardError(f"layer {n} has an attention output, where none are described")
    count = told["layers"]
    around = _layers("layer", count, attention_outputs) if around_them else ()
    return _layers("layer", count, maps), _layers("layer", count, values), around


def _map(layer: dict[str, Any], fit: Fit) -> AttentionMap:
    names = typed("tensors", layer["tensors"], dict)
    shapes = {"query": "1 H L D", "key": "1 G S D", "bias": "1 #H #L #S", "sinks": "H", "mask.keys": "1 S"}
    packed = {}
    for name in sorted(names, key=lambda each: list(shapes).index(each) if each in shapes else len(shapes)):
        masks, below = name.startswith("mask."), name in map_file.MINUS_INFINITY
        packed[name] = fit.take(names[name], shapes.get(name, "1 #H #L #S"), boolean=masks, below=below)
    try:
        found = AttentionMap.of(map_file.unpack(packed, layer["map"]))
    except RegardError as error:
        raise RegardError(f"layer {layer['layer']}: {error}") from None
    if found.ndim != 3:
        raise RegardError(f"the map of layer {layer['layer']} has {found.ndim} axes, needs 3")
    return found


def _once(what: str, number: Any, there: Mapping[int, Any]) -> int:
    """A number that is described once."""
    if whole_number(f"{what}'s number", number, 0, MANY) in there:
        raise RegardError(f"{what} {number} is described twice")
    return int(number)


def _layers(what: str, count: Any, items: dict[int, Any]) -> Any:
    """A tuple where all are held, else a sequence that refuses the others."""
    whole_number(f"the number of {what}s", count, 0, MANY)
    if items and max(items) >= count:
        raise RegardError(f"{what} {max(items)} is described, of {count}")
    return tuple(items[n] for n in range(count)) if len(items) == count else Saved(what, count, items)
