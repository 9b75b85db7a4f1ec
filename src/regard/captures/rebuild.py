"""From a description and tensors to traces. Every shape is held against the others before anything is read."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regard.attention import storage
from regard.attention.map import AttentionMap
from regard.blocks import Block, Unverified
from regard.captures.around import rebuild_block
from regard.captures.fit import Fit
from regard.captures.saved import Saved
from regard.captures.typed import finite, status, token, typed
from regard.errors import RegardError
from regard.tokens import Token
from regard.trace import PairTrace, Status, Trace


def rebuild(told: dict[str, Any], tensors: Mapping[str, Tensor]) -> Trace | PairTrace:
    """A trace or a pair from its description; tensors without numbers do for a check.

    Raises:
        RegardError: a tensor is missing, or has another shape or dtype than the description tells.
    """
    if told["kind"] == "pair":
        encoder = _trace(told["encoder"], tensors)
        return PairTrace(encoder, _trace(told["decoder"], tensors, len(encoder.tokens)))
    if told["kind"] != "trace":
        raise RegardError(f"it holds a {told['kind']!r}, needed is a trace or a pair")
    return _trace(told, tensors)


def _trace(told: dict[str, Any], tensors: Mapping[str, Tensor], across: int | None = None) -> Trace:
    """across: how many tokens the encoder has that this trace looks at, where that is known."""
    tokens = tuple(Token(*token(n, each)) for n, each in enumerate(typed("tokens", told["tokens"], list)))
    fit = Fit(tensors, {"L": len(tokens)})
    names = told["vectors"]

    def vectors(name: str, shape: str) -> Tensor | None:
        return fit.take(names[name], shape) if name in names else None

    # W, of the embedding parts, M, of the states, and K may differ: some models project behind one or before the other.
    embedded = {name: vectors(name, "L W") for name in ("learned", "positional", "segment", "input")}
    contextual, logits = fit.take(names["contextual"], "L K"), vectors("logits", "L V")
    states = {n: fit.take(name, "L M") for n, name in told["states"]["held"]}
    attention, values, blocks = _stack(told["attention"], fit, None)
    cross, cross_values, cross_blocks = _stack(told["cross"], fit, across)
    return Trace(
        text=typed("text", told["text"], str),
        tokens=tokens,
        **embedded,
        states=_layers("state", told["states"]["count"], states),
        contextual=contextual,
        logits=logits,
        attention=attention,
        values=values,
        status=Status(**status(told["status"])),
        cross=cross,
        cross_values=cross_values,
        blocks=blocks,
        cross_blocks=cross_blocks,
    )


def _stack(told: dict[str, Any], fit: Fit, across: int | None) -> tuple[Any, Any, Any]:
    """(maps, values, blocks) of one kind of attention, by layer."""
    maps: dict[int, AttentionMap] = {}
    values: dict[int, Tensor | None] = {}
    blocks: dict[int, Block | Unverified] = {}
    for layer in told["held"]:
        n = layer["layer"]
        inner = fit.within(H=layer.get("heads"), S=layer.get("keys") if across is None else across)
        maps[n] = _map(layer, inner)
        values[n] = None if layer["value"] is None else inner.take(layer["value"], "G S E")
        if told["blocks"]:
            blocks[n] = rebuild_block(layer["block"], inner)
    count = told["layers"]
    around = _layers("layer", count, blocks) if told["blocks"] else ()
    return _layers("layer", count, maps), _layers("layer", count, values), around


def _map(layer: dict[str, Any], fit: Fit) -> AttentionMap:
    names, told = layer["tensors"], dict(layer["map"])
    told |= {"scale": finite("scale", told["scale"]), "softcap": finite("softcap", told["softcap"], None)}
    typed("offset", told["offset"], int, None)
    shapes = {"query": "1 H L D", "key": "1 G S D", "bias": "1 #H #L #S", "sinks": "H", "mask.keys": "1 S"}
    packed = {}
    for name in sorted(names, key=lambda each: list(shapes).index(each) if each in shapes else len(shapes)):
        masks = name.startswith("mask.")
        packed[name] = fit.take(names[name], shapes.get(name, "1 #H #L #S"), boolean=masks)
    if fit.sizes["H"] % max(1, fit.sizes["G"]):
        raise RegardError(
            f"the map of layer {layer['layer']} has {fit.sizes['G']} key heads, needs a number that divides its "
            f"{fit.sizes['H']} heads"
        )
    if told["ndim"] != 3:
        raise RegardError(f"the map of layer {layer['layer']} has {told['ndim']} axes, needs 3")
    return storage.unpack(packed, told)


def _layers(what: str, count: int, items: dict[int, Any]) -> Any:
    """A tuple where all are held, else a sequence that refuses the others."""
    typed(f"the number of {what}s", count, int)
    if any(not 0 <= typed(f"{what}'s number", n, int) < count for n in items):
        raise RegardError(f"{what} {max(items)} is described, of {count}")
    if not 0 <= count < 1 << 31:
        raise RegardError(f"{count} {what}s are described")
    return tuple(items[n] for n in range(count)) if len(items) == count else Saved(what, count, items)
