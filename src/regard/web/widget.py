"""Show the page as a notebook widget, whose selection you can read and set in Python as traits.

This module needs anywidget (the extra `notebook`). `regard.show` makes the widget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from regard.errors import RegardError
from regard.web.html_file import built_program
from regard.web.page import Page

TOKENS_OF = {"gives": "queries", "receives": "keys"}  # by side: the tokens that you can select
VIEWS = ("overview", "map", "compare", "tokens", "steps")  # as format.ts names them


class SelectionError(RegardError, traitlets.TraitError):
    """Raised if a trait is set to a value that the page doesn't have. The message lists the valid values."""


@dataclass(frozen=True)
class PageCall:
    """The possible selections in an attention call on a page.

    text: the name of its text or text pair in the page's menu. heads: the numbers of its heads.
    queries, keys: token counts. same: whether queries and keys are in the same text.
    """

    text: str
    layer: int
    nth: int
    heads: tuple[int, ...]
    queries: int
    keys: int
    same: bool


def calls_on_page(page: Mapping[str, Any]) -> list[PageCall]:
    """Return the attention calls in a page's data, with the layers, heads and tokens to choose from."""
    calls = []
    for call in page["calls"]:
        queries, keys = (page["texts"][call[side]] for side in ("queries", "keys"))
        same = call["queries"] == call["keys"]
        name = queries["name"] if same else f"{queries['name']} → {keys['name']}"
        length, size = (len(text["tokens"]["text"]) for text in (queries, keys))
        heads = tuple(call["head_numbers"] or range(call["heads"]))
        calls.append(PageCall(name, call["layer"], call["nth"], heads, length, size, same))
    return calls


def check_number(kind: str, value: int | None, numbers: Sequence[int], owner: str) -> int | None:
    """Return a layer, head, token or call number, counted from 0. None stays None. Raises if the page lacks it."""
    if value is None:
        return None
    if isinstance(value, bool) or not (value in numbers or -len(numbers) <= value < 0):
        raise SelectionError(f"{kind} {value} is not on the page: {owner} has {page_numbers_in_words(kind, numbers)}")
    return numbers[value] if value < 0 else value


def page_numbers_in_words(kind: str, numbers: Sequence[int]) -> str:
    """Format layer or head numbers in words: "layers 0 to 5", "layers 0, 2"."""
    if not numbers:
        return f"no {kind}s"
    if len(numbers) == 1:
        return f"{kind} {numbers[0]} alone"
    if len(numbers) == numbers[-1] - numbers[0] + 1:
        return f"{kind}s {numbers[0]} to {numbers[-1]}"
    return f"{kind}s {', '.join(map(str, numbers))}"


class AttentionWidget(anywidget.AnyWidget):
    """Show what every token of a text attends to, in a notebook: the page of `regard.save_page` as a live widget.

    Its traits follow the selection on the page, and setting them changes it. text: one of `texts`. layer, view: the
    current ones. nth: the call's number in its layer, mostly 0. head: None for the mean of heads. token: a position or
    None. side: "gives" for tokens it attends to, "receives" for tokens that attend to it. You can follow a trait with
    `widget.observe`. Values that the page doesn't have raise an error. Negative numbers count from the end.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    _bare = traitlets.Bool().tag(sync=True)
    _static_id = traitlets.Unicode().tag(sync=True)
    page = traitlets.Dict(read_only=True).tag(sync=True)
    numbers = traitlets.List(traitlets.Bytes(), read_only=True).tag(sync=True)
    views = traitlets.List(traitlets.Unicode()).tag(sync=True)  # set by the page when it is first displayed

    text = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    nth = traitlets.Int().tag(sync=True)
    head = traitlets.Int(None, allow_none=True).tag(sync=True)
    token = traitlets.Int(None, allow_none=True).tag(sync=True)
    side = traitlets.Unicode("gives").tag(sync=True)
    view = traitlets.Unicode("tokens").tag(sync=True)

    _whole = True  # True while several traits are set together, so that none resets another

    def __init__(self, page: Page, static: str = "", *, bare: bool = False) -> None:
        """Make a page's widget. static: HTML that a saved notebook shows instead. bare: show only the view."""
        script, style = built_program("widget")
        data = page.data()
        opening: Mapping[str, Any] = data["opening"]  # type: ignore[assignment]
        self._static = static
        calls = calls_on_page(data)
        names = [call.text for call in calls]
        self._choices = {name: [call for call in calls if call.text == name] for name in dict.fromkeys(names)}
        chosen: dict[str, Any] = {}
        if page.calls:
            call, head = calls[opening["call"]], opening["head"]
            chosen = {"text": call.text, "layer": call.layer, "nth": call.nth, "token": opening["token"]}
            chosen["head"] = None if head is None else call.heads[head]
        self.set_trait("page", data)
        self.set_trait("numbers", page.numbers.blobs)
        super().__init__(
            _esm=script, _css=style, _static_id=f"regard-static-{uuid4().hex}", _bare=bare,
            view=opening["view"], **chosen,
        )  # fmt: skip
        self._whole = False

    @property
    def texts(self) -> list[str]:
        """The possible values of `text`."""
        return list(self._choices)

    def set_state(self, sync_data: dict[str, object]) -> None:
        """Set traits to the selection that the browser sends."""
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
        """Display the page on top of its static HTML, which is what a saved notebook shows."""
        if self._static:
            wrapped = f'<div class="{self._static_id}">{self._static}</div>'
            display({"text/html": wrapped, "text/plain": repr(self)}, raw=True)
        bundle = self._repr_mimebundle_()
        if bundle is not None:
            display(bundle[0], metadata=bundle[1], raw=True)

    @property
    def _call(self) -> PageCall:
        """The selected call, or the text's first call."""
        calls = self._choices[self.text]
        return next((call for call in calls if (call.layer, call.nth) == (self.layer, self.nth)), calls[0])

    @traitlets.validate("text", "layer", "nth", "head", "token", "side", "view")
    def _validate_choice(self, proposal: Any) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "view":  # `views` is empty until the page is displayed
            number = value.removeprefix("panel ")
            known = value in self.views if self.views else value in VIEWS or (number != value and number.isdecimal())
            if not known:
                views = ", ".join(map(repr, self.views or VIEWS))
                raise SelectionError(f"view {value!r} is not on the page: it has {views}")
        elif name == "side" and value not in TOKENS_OF:
            raise SelectionError(f"side: got {value!r}, expected {' or '.join(map(repr, TOKENS_OF))}")
        elif name != "side" and not self._choices and value not in ("", 0, None):
            raise SelectionError(f"{name}: this page has no attention to choose from")
        elif name == "text" and self._choices and value not in self._choices:
            raise SelectionError(f"text {value!r} is not on the page: it has {', '.join(map(repr, self._choices))}")
        if name in ("view", "side", "text") or not self._choices:
            return value
        layers, owner = [call.layer for call in self._choices[self.text]], repr(self.text)
        if name == "layer":
            return check_number("layer", value, sorted(set(layers)), owner)
        if name == "token":
            return check_number("token", value, range(getattr(self._call, TOKENS_OF[self.side])), owner)
        owner = f"layer {self.layer} of {owner}"
        if name == "nth":
            return check_number("call", value, range(layers.count(self.layer)), owner)
        return check_number("head", value, self._call.heads, owner)

    @traitlets.observe("text", "layer", "side")
    def _reset_missing_choices(self, change: Any) -> None:
        """After text, layer or side was set from Python, reset any layer, call, head or token that the page lacks."""
        if self._whole or not self._choices:
            return
        calls, other_text = self._choices[self.text], change["name"] == "text"
        with self.hold_sync():
            if self.layer not in {call.layer for call in calls}:
                self.layer = calls[0].layer
            if (self.layer, self.nth) not in [(call.layer, call.nth) for call in calls]:
                self.nth = 0
            if self.head is not None and self.head not in self._call.heads:
                self.head = None
            if other_text or (change["name"] == "side" and not self._call.same):
                self.token = None
