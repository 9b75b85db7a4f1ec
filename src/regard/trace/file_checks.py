"""Check the description in a trace file: types of values, and shapes of tensors against each other; nothing is built.

`save` checks what it is about to write, `open` what it read, by the same functions: what was saved can be opened.
"""

from collections import Counter
from collections.abc import Container, Mapping
from typing import Any

from torch import Tensor

from regard.attention import map_file
from regard.errors import RegardError
from regard.json_files import expect_fields, expect_finite, expect_integer, expect_type, short
from regard.model_files.pooling import MODES
from regard.trace.attention_output import AttentionOutput
from regard.trace.file_format import (
    ATTENTION,
    DENSE_MASK,
    HIDDEN_STATE,
    LARGEST_COUNT,
    LARGEST_ID,
    LAYER,
    LEFT_OUT,
    MAP_TENSORS,
    OUTPUT_KINDS,
    OUTPUT_NEEDED,
    OUTPUT_PARTS,
    OUTPUT_TENSORS,
    POOLING,
    STATUS,
    TOKEN,
    TRACE,
    TURN,
    VALUE,
    VECTORS,
)
from regard.trace.file_shapes import Shapes


def check_description(description: Any, tensors: Mapping[str, Tensor]) -> None:
    """Check a file's whole description. tensors: all that are in the file, without numbers (on "meta") while saving.

    Raises:
        RegardError: a field is missing or unknown, a value is none that a trace can have, or a tensor is missing, has
            another shape or dtype than is described, or is not described at all.
    """
    expect_fields("its description", description, ("many", "traces"))
    traces = expect_type("traces", description["traces"], list)
    if not traces:
        raise RegardError("it holds no trace")
    if not expect_type("many", description["many"], bool) and len(traces) > 1:
        raise RegardError(f"it holds {len(traces)} traces where one is described")
    used: set[str] = set()
    for each in traces:
        _check_item(each, Shapes(tensors, used))
    for name in tensors:
        if name not in used:
            raise RegardError(f"tensor {name!r} is unknown")


def _check_item(described: Any, shapes: Shapes) -> None:
    """Check a trace, or a pair of an encoder's and a decoder's."""
    kind = expect_type("what it holds", described, dict).get("kind")
    if kind == "pair":
        expect_fields("a pair", described, ("kind", "encoder", "decoder"))
        _check_trace(described["encoder"], shapes.within())
        _check_trace(described["decoder"], shapes.within(), across=len(described["encoder"]["tokens"]))
    elif kind == "trace":
        _check_trace({name: value for name, value in described.items() if name != "kind"}, shapes)
    else:
        raise RegardError(f"it holds a {short(kind)}, needs a trace or a pair")


def _check_trace(described: Any, shapes: Shapes, across: int | None = None) -> None:
    """Check one trace. across: how many tokens its cross-attention attends to, those of the encoder's trace."""
    expect_fields("a trace", described, TRACE, maybe=("pooling", "turns"))
    text = expect_type("text", described["text"], str)
    tokens = expect_type("tokens", described["tokens"], list)
    for number, token in enumerate(tokens):
        _check_token_of_trace(number, token, text)
    _check_names_of_trace(described["names"])
    shapes.sizes["L"] = len(tokens)
    vectors = expect_fields("vectors", described["vectors"], ("contextual",), maybe=VECTORS)
    for name, shape in VECTORS.items():
        if name in vectors:
            shapes.check(vectors[name], shape)
    states = expect_fields("hidden_states", described["hidden_states"], ("count", "saved"))
    seen: set[int] = set()
    for each in expect_type("the hidden states", states["saved"], list):
        if len(expect_type("a hidden state", each, list)) != 2:
            raise RegardError(f"a hidden state has {len(each)} values, needs its number and its tensor's name")
        seen.add(_trace_layer_number_once("hidden state", each[0], seen))
        shapes.check(each[1], HIDDEN_STATE)
    _check_trace_layer_count("hidden state", states["count"], seen)
    _check_attention(described["attention"], shapes, None)
    _check_attention(described["cross"], shapes, across)
    _check_status_of_trace(described["status"])
    if "pooling" in described:
        _check_pooling_of_trace(described["pooling"])
    for turn in expect_type("turns", described.get("turns", []), list):
        _check_turn_of_trace(turn, len(text), len(tokens))


def _check_attention(described: Any, shapes: Shapes, across: int | None) -> None:
    """Check the maps, values and outputs of self- or cross-attention."""
    expect_fields("attention", described, ATTENTION)
    outputs = expect_type("attention: attention_outputs", described["attention_outputs"], bool)
    made = _check_calls_of_trace(described["made"], described["layers"])
    seen: set[tuple[int, int]] = set()
    for layer in expect_type("the layers", described["saved"], list):
        expect_fields("a layer", layer, LAYER)
        n = expect_integer("layer's number", layer["layer"], 0, LARGEST_COUNT)
        call = n, expect_integer(f"call of layer {n}", layer["nth"], 0, LARGEST_COUNT)
        if call in seen:
            raise RegardError(f"layer {n} is described twice")
        if call[1] > 0 if made is None else call not in made:
            raise RegardError(f"call {call[1]} of layer {n} is described, which the layer did not make")
        seen.add(call)
        heads = expect_integer(f"heads of layer {n}", layer["heads"], 1, LARGEST_COUNT)
        keys = expect_integer(f"keys of layer {n}", layer["keys"], 1, map_file.FURTHEST)
        if across is not None and keys != across:
            raise RegardError(f"layer {n} has {keys} keys, the other text has {across} tokens")
        inner = shapes.within(H=heads, S=keys)
        _check_map(n, layer, inner)
        if layer["value"] is not None:
            inner.check(layer["value"], VALUE)
        if outputs:
            _check_output(layer["attention_output"], inner)
        elif layer["attention_output"] is not None:
            raise RegardError(f"layer {n} has an attention output, where none are described")
    _check_trace_layer_count("layer", described["layers"], {n for n, _ in seen})


def _check_calls_of_trace(made: Any, layers: Any) -> set[tuple[int, int]] | None:
    """Check the numbers of the calls that layers made, null where each made one; returns them."""
    expect_integer("the number of layers", layers, 0, LARGEST_COUNT)
    if made is None:
        return None
    calls: Counter[int] = Counter()
    for each in expect_type("the calls that were made", made, list):
        if len(expect_type("a call", each, list)) != 2:
            raise RegardError(f"a call has {len(each)} numbers, needs its layer and which of its calls it is")
        layer = expect_integer("a call's layer", each[0], 0, layers - 1)
        expect_integer(f"the number of layer {layer}'s next call", each[1], calls[layer], calls[layer])
        calls[layer] += 1
    return {(layer, nth) for layer, count in calls.items() for nth in range(count)}


def _check_map(n: int, layer: Mapping[str, Any], shapes: Shapes) -> None:
    """Check one attention map of three axes."""
    names, order = expect_type("tensors", layer["tensors"], dict), list(MAP_TENSORS)
    tensors = {}
    for name in sorted(names, key=lambda each: order.index(each) if each in MAP_TENSORS else len(order)):
        boolean = name.startswith("mask.")
        tensors[name] = shapes.check(names[name], MAP_TENSORS.get(name, DENSE_MASK), boolean=boolean)
    try:
        map_file.check_map_description(tensors, layer["map"])
    except RegardError as error:
        raise RegardError(f"layer {n}: {error}") from None
    if layer["map"]["ndim"] != 3:
        raise RegardError(f"the map of layer {n} has {layer['map']['ndim']} axes, needs 3")


def _check_output(described: Any, shapes: Shapes) -> None:
    """Check an attention output, whose W_O has one column for each number of each head."""
    name = "an attention output"
    if "unverified" in expect_type(name, described, dict):
        expect_fields(name, described, ("unverified",))
        expect_type("why an attention output is unverified", described["unverified"], str)
        return
    if not isinstance(described.get("kind"), str) or described["kind"] not in OUTPUT_KINDS:
        known = ", ".join(OUTPUT_KINDS)
        raise RegardError(f"{name} of the kind {short(described.get('kind'))} is described, known are {known}")
    _check_output_part(AttentionOutput, name, described, shapes)
    columns, heads, width = shapes.sizes["X"], shapes.sizes["H"], shapes.sizes.get("E")
    if columns % heads or (width is not None and columns != heads * width):
        needs = f"{heads} heads" if width is None else f"{heads} heads of {width}"
        raise RegardError(f"tensor {described['weight']!r} has {columns} columns, needs those of {needs}")


def _check_output_part(part: type, name: str, described: Any, shapes: Shapes) -> None:
    """Check the fields of an `AttentionOutput`, or of a `Norm` or `Scaling` in it."""
    expect_fields(name, described, list(part.__dataclass_fields__))  # type: ignore[attr-defined]
    for field, value in described.items():
        if field == "eps":
            if expect_finite("eps", value) < 0:
                raise RegardError(f"eps is {value}, needs 0 or more")
        elif value is None and field in OUTPUT_NEEDED[part]:
            raise RegardError(f"{name} without {field} is described")
        elif value is not None and field in OUTPUT_TENSORS[part]:
            shapes.check(value, OUTPUT_TENSORS[part][field])
        elif value is not None and field in OUTPUT_PARTS:
            inner = OUTPUT_PARTS[field]
            _check_output_part(inner, f"a {inner.__name__.lower()}", value, shapes)


def _check_token_of_trace(number: int, described: Any, text: str) -> None:
    """Check a token's values, in the order of `Token`'s fields."""
    if len(expect_type(f"token {number}", described, list)) != len(TOKEN):
        raise RegardError(f"token {number} has {len(described)} values, needs {len(TOKEN)}")
    for value, kinds in zip(described, TOKEN, strict=True):
        expect_type(f"a value of token {number}", value, *kinds)
    name, _, start, end, word, _ = described
    expect_integer(f"the id of token {number}", name, -1, LARGEST_ID)  # -1 where a model reads no ids
    expect_integer(f"the end of token {number}", end, 0, len(text))
    expect_integer(f"the start of token {number}", start, 0, end)
    expect_integer(f"the word of token {number}", word, 0, LARGEST_ID, None)


def _check_names_of_trace(described: Any) -> None:
    """Check the spellings of token ids: a list of [id, text], no id twice."""
    seen = set()
    for each in expect_type("names", described, list):
        if len(expect_type("one of names", each, list)) != 2:
            raise RegardError(f"one of names has {len(each)} values, needs an id and how it is spelled")
        number = expect_integer("the id of one of names", each[0], 0, LARGEST_ID)
        if number in seen:
            raise RegardError(f"names: id {number} stands in them twice")
        seen.add(number)
        expect_type("one of names", each[1], str)


def _check_status_of_trace(described: Any) -> None:
    """Check the fields of a `Status`, whose numbers are none below zero."""
    for name, value in expect_fields("status", described, STATUS).items():
        expect_type(f"status: {name}", value, *STATUS[name])
        if float in STATUS[name] and value is not None and expect_finite(f"status: {name}", value) < 0:
            raise RegardError(f"status: {name} is {value}, needs 0 or more")
        if isinstance(value, list):
            for each in value:
                expect_type(f"status: {name}", each, str)
    expect_integer("status: rows_compared", described["rows_compared"], 0, 1 << 53)


def _check_turn_of_trace(described: Any, length: int, count: int) -> None:
    """Check a message of a chat's text. length: characters of the text. count: its tokens."""
    for name, value in expect_fields("a turn", described, TURN).items():
        expect_type(f"turn: {name}", value, TURN[name])
    end = expect_integer("turn: end", described["end"], 0, length)
    expect_integer("turn: start", described["start"], 0, end)
    for each in described["tokens"]:
        expect_integer("turn: token", each, 0, count - 1)


def _check_pooling_of_trace(described: Any) -> None:
    """Check how the model pools."""
    fields = POOLING | LEFT_OUT
    for name, value in expect_fields("pooling", described, POOLING, maybe=LEFT_OUT).items():
        expect_type(f"pooling: {name}", value, fields[name])
    expect_integer("pooling: left_out", described.get("left_out", 0), 0, LARGEST_COUNT)
    unknown = [mode for mode in described["modes"] if mode not in MODES]
    if unknown or not described["modes"]:
        raise RegardError(f"pooling: modes are {short(described['modes'])}, known are {', '.join(MODES)}")


def _trace_layer_number_once(what: str, number: Any, seen: Container[int]) -> int:
    """Check that a layer's or state's number is one, and described once."""
    if expect_integer(f"{what}'s number", number, 0, LARGEST_COUNT) in seen:
        raise RegardError(f"{what} {number} is described twice")
    return int(number)


def _check_trace_layer_count(what: str, count: Any, seen: set[int]) -> None:
    """Check how many layers or states there are against the numbers of those saved."""
    expect_integer(f"the number of {what}s", count, 0, LARGEST_COUNT)
    if seen and max(seen) >= count:
        raise RegardError(f"{what} {max(seen)} is described, of {count}")
