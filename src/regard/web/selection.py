"""Say what can be chosen on a page: texts by their names, their layers and heads, the tokens of each side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.errors import RegardError

Side = Literal["gives", "receives"]
SIDES: tuple[Side, ...] = ("gives", "receives")
VIEWS = ("tokens", "lines", "heads", "map", "steps", "alignment", "generation", "compare")  # as format.ts names them


@dataclass(frozen=True)
class Call:
    """What a page says of one attention call, as far as one can choose in it.

    heads: the numbers of those that it has. queries, keys: how many tokens. same: whether both are of one text.
    """

    layer: int
    nth: int
    heads: tuple[int, ...]
    queries: int
    keys: int
    same: bool

    def tokens(self, side: Side) -> int:
        """How many tokens can be chosen on a side."""
        return self.queries if side == "gives" else self.keys


Choices = Mapping[str, Sequence[Call]]  # by the name of the text, as the page's menu has it


def calls_on_page(page: Mapping[str, Any]) -> dict[str, list[Call]]:
    """Read a page's data: the calls of each text, or pair of texts, by its name."""
    texts = page["texts"]
    found: dict[str, list[Call]] = {}
    for call in page["calls"]:
        queries, keys = texts[call["queries"]], texts[call["keys"]]
        same = call["queries"] == call["keys"]
        name = queries["name"] if same else f"{queries['name']} → {keys['name']}"
        length, size = (len(text["tokens"]["text"]) for text in (queries, keys))
        heads = tuple(call["head_numbers"] or range(call["heads"]))
        found.setdefault(name, []).append(Call(call["layer"], call["nth"], heads, length, size, same))
    return found


def text_name_on_page(page: Mapping[str, Any], call: int) -> str:
    """Return the name of the text, or pair of texts, that a call of a page's data is of."""
    texts, of = page["texts"], page["calls"][call]
    first, second = texts[of["queries"]]["name"], texts[of["keys"]]["name"]
    return first if of["queries"] == of["keys"] else f"{first} → {second}"


def chosen_call(choices: Choices, text: str, layer: int, nth: int = 0) -> Call | None:
    """Look a call up; None where a text's layer has no such call.

    choices: the calls of a page, by the name of their text. nth: which of the layer's calls.
    """
    return next((call for call in choices[text] if (call.layer, call.nth) == (layer, nth)), None)


def check_text_on_page(choices: Choices, text: str) -> str:
    """Check the name of a text. Raises RegardError where the page has none of that name."""
    if text not in choices:
        raise RegardError(f"text {text!r} is not on the page: it has {', '.join(map(repr, choices))}")
    return text


def check_layer_on_page(choices: Choices, text: str, layer: int) -> int:
    """Check a layer of a text, counted from the end where it is negative. Raises RegardError where it is not there."""
    layers = sorted({call.layer for call in choices[text]})
    if isinstance(layer, bool) or not (layer in layers or -len(layers) <= layer < 0):
        raise RegardError(f"layer {layer} is not on the page: {text!r} has {page_numbers_in_words('layer', layers)}")
    return layers[layer] if layer < 0 else layer


def check_number(what: str, given: int | None, numbers: Sequence[int], whose: str) -> int | None:
    """Check the number of a head, a token or a layer's call; None stays."""
    if given is None:
        return None
    if isinstance(given, bool) or not (given in numbers or -len(numbers) <= given < 0):
        raise RegardError(f"{what} {given} is not on the page: {whose} has {page_numbers_in_words(what, numbers)}")
    return numbers[given] if given < 0 else given


def check_side(side: str) -> str:
    """Check the name of a side. Raises RegardError for any other."""
    if side not in SIDES:
        raise RegardError(f"side: given {side!r}, needs {' or '.join(map(repr, SIDES))}")
    return side


def check_view(view: str, shown: Sequence[str]) -> str:
    """Check the name of a view. shown: those that the page says it has, none before it is seen."""
    number = view.removeprefix("panel ")
    known = view in shown if shown else view in VIEWS or (number != view and number.isdecimal())
    if not known:
        raise RegardError(f"view {view!r} is not on the page: it has {', '.join(map(repr, shown or VIEWS))}")
    return view


def page_numbers_in_words(what: str, numbers: Sequence[int]) -> str:
    """Write numbers shortly: "layers 0 to 5", "layers 0, 2"."""
    if not numbers:
        return f"no {what}s"
    if len(numbers) == 1:
        return f"{what} {numbers[0]} alone"
    if len(numbers) == numbers[-1] - numbers[0] + 1:
        return f"{what}s {numbers[0]} to {numbers[-1]}"
    return f"{what}s {', '.join(map(str, numbers))}"
