"""The page as a widget of a notebook: what is chosen on it can be read and set from Python, as traits.

This module needs anywidget (the extra `notebook`); `regard.show` makes the widget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from regard.errors import RegardError
from regard.web.built_page import built_program
from regard.web.page import Page

Side = Literal["gives", "receives"]
SIDES: tuple[Side, ...] = ("gives", "receives")
VIEWS = ("overview", "map", "compare", "tokens", "steps")  # as format.ts names them


@dataclass(frozen=True)
class PageCall:
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


Choices = Mapping[str, Sequence[PageCall]]  # by the name of the text, as the page's menu has it


def calls_on_page(page: Mapping[str, Any]) -> dict[str, list[PageCall]]:
    """Read a page's data: the calls of each text, or pair of texts, by its name."""
    texts = page["texts"]
    found: dict[str, list[PageCall]] = {}
    for call in page["calls"]:
        queries, keys = texts[call["queries"]], texts[call["keys"]]
        same = call["queries"] == call["keys"]
        name = queries["name"] if same else f"{queries['name']} → {keys['name']}"
        length, size = (len(text["tokens"]["text"]) for text in (queries, keys))
        heads = tuple(call["head_numbers"] or range(call["heads"]))
        found.setdefault(name, []).append(PageCall(call["layer"], call["nth"], heads, length, size, same))
    return found


def text_name_on_page(page: Mapping[str, Any], call: int) -> str:
    """Return the name of the text, or pair of texts, that a call of a page's data is of."""
    texts, of = page["texts"], page["calls"][call]
    first, second = texts[of["queries"]]["name"], texts[of["keys"]]["name"]
    return first if of["queries"] == of["keys"] else f"{first} → {second}"


def chosen_call(choices: Choices, text: str, layer: int, nth: int = 0) -> PageCall | None:
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


class SelectionError(RegardError, traitlets.TraitError):
    """What is raised where a trait is set to what the page does not have; one line that says what it has."""


class AttentionWidget(anywidget.AnyWidget):
    """Shows what every token of a text attends to, in a notebook: the page of `regard.save_page`, alive.

    Its traits are what is chosen on the page, in both directions: text (one of `texts`), layer, nth (which of a layer's
    calls, mostly 0), head (None for the mean of heads), token (its number, or None), side ("gives": what the token
    attends to, "receives": what attends to it) and view. `widget.observe(function, "token")` follows one of them. What
    the page does not have is refused; negative numbers count from the end.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    _bare = traitlets.Bool().tag(sync=True)
    _static_id = traitlets.Unicode().tag(sync=True)
    page = traitlets.Dict(read_only=True).tag(sync=True)
    numbers = traitlets.List(traitlets.Bytes(), read_only=True).tag(sync=True)
    views = traitlets.List(traitlets.Unicode()).tag(sync=True)  # told by the page when it is first seen

    text = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    nth = traitlets.Int().tag(sync=True)
    head = traitlets.Int(None, allow_none=True).tag(sync=True)
    token = traitlets.Int(None, allow_none=True).tag(sync=True)
    side = traitlets.Unicode("gives").tag(sync=True)
    view = traitlets.Unicode("tokens").tag(sync=True)

    _whole = True  # while several traits are set at once, and fit together

    def __init__(self, page: Page, static: str = "", *, bare: bool = False) -> None:
        """Make the widget of a page. static: HTML that a saved notebook shows in its place. bare: its view alone."""
        shell = built_program("widget")
        data = page.data()
        opening: Mapping[str, Any] = data["opening"]  # type: ignore[assignment]
        self._static = static
        self._choices = calls_on_page(data)
        chosen: dict[str, Any] = {}
        if page.calls:
            call, head = page.calls[opening["call"]], opening["head"]
            named = None if head is None else (call["head_numbers"] or range(call["heads"]))[head]
            chosen = {"layer": call["layer"], "nth": call["nth"], "head": named, "token": opening["token"]}
            chosen["text"] = text_name_on_page(data, opening["call"])
        self.set_trait("page", data)
        self.set_trait("numbers", page.numbers.blobs)
        super().__init__(
            _esm=shell.script, _css=shell.style, _static_id=f"regard-static-{uuid4().hex}", _bare=bare,
            view=opening["view"], **chosen,
        )  # fmt: skip
        self._whole = False

    @property
    def texts(self) -> list[str]:
        """The names that `text` can have."""
        return list(self._choices)

    def set_state(self, sync_data: dict[str, object]) -> None:
        """Take over what was chosen on the page."""
        self._whole = True
        try:
            super().set_state(sync_data)
        finally:
            self._whole = False

    def __repr__(self) -> str:
        if not self._choices:
            return f"AttentionWidget({self.page['title']!r}: {self.view})"
        head = "mean of heads" if self.head is None else f"head {self.head}"
        token = "no token chosen" if self.token is None else f"token {self.token} {self.side}"
        return f"AttentionWidget({self.text!r}: layer {self.layer}, {head}, {token})"

    def _ipython_display_(self) -> None:
        """Show the sentences, which a saved notebook keeps and the page covers, and the page."""
        if self._static:
            wrapped = f'<div class="{self._static_id}">{self._static}</div>'
            display({"text/html": wrapped, "text/plain": repr(self)}, raw=True)
        bundle = self._repr_mimebundle_()
        if bundle is not None:
            display(bundle[0], metadata=bundle[1], raw=True)

    @property
    def _call(self) -> PageCall:
        found = chosen_call(self._choices, self.text, self.layer, self.nth)
        return found or self._choices[self.text][0]

    @traitlets.validate("text", "layer", "nth", "head", "token", "side", "view")
    def _check(self, proposal: Any) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        try:
            if not self._choices and name not in ("view", "side") and value not in ("", 0, None):
                raise RegardError(f"{name}: this page has no attention to choose from")
            return self._checked(name, value) if self._choices or name in ("view", "side") else value
        except RegardError as error:
            raise SelectionError(str(error)) from None

    def _checked(self, name: str, value: Any) -> object:
        if name == "text":
            return check_text_on_page(self._choices, value)
        if name == "layer":
            return check_layer_on_page(self._choices, self.text, value)
        if name == "nth":
            count = sum(call.layer == self.layer for call in self._choices[self.text])
            return check_number("call", value, range(count), f"layer {self.layer} of {self.text!r}")
        if name == "head":
            return check_number("head", value, self._call.heads, f"layer {self.layer} of {self.text!r}")
        if name == "token":
            count = self._call.tokens(self.side)  # type: ignore[arg-type]
            return check_number("token", value, range(count), f"{self.text!r}")
        return check_side(value) if name == "side" else check_view(value, self.views)

    @traitlets.observe("text", "layer", "side")
    def _fit(self, change: Any) -> None:
        """Keep of layer, head and token what there still is, where one of the others was set from Python."""
        if self._whole or not self._choices:
            return
        calls, other_text = self._choices[self.text], change["name"] == "text"
        with self.hold_sync():
            if self.layer not in {call.layer for call in calls}:
                self.layer = calls[0].layer
            if chosen_call(self._choices, self.text, self.layer, self.nth) is None:
                self.nth = 0
            if self.head is not None and self.head not in self._call.heads:
                self.head = None
            if other_text or (change["name"] == "side" and not self._call.same):
                self.token = None
