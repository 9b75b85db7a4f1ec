"""Show the page as a notebook widget, whose selection you can read and set in Python as traits.

This module needs anywidget (the extra `notebook`). `regard.show` makes the widget.
"""

from collections.abc import Mapping, Sequence
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


def calls_by_text(page: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the attention calls in a page's data, by the name of their text or text pair in the page's menu."""
    calls: dict[str, list[Any]] = {}
    for call in page["calls"]:
        names = dict.fromkeys(page["texts"][call[role]]["name"] for role in ("queries", "keys"))
        calls.setdefault(" → ".join(names), []).append(call)
    return calls


def head_numbers(call: Mapping[str, Any]) -> Sequence[int]:
    """Return the numbers of the heads that the page has of a call."""
    return call["head_numbers"] or range(call["heads"])


def check_choice(trait: str, value: Any, values: Sequence[Any], owner: str) -> Any:
    """Return a trait's value. Negative numbers count from the end. Raises SelectionError if it isn't in `values`."""
    if isinstance(value, int) and -len(values) <= value < 0:
        return values[value]
    if value not in values or isinstance(value, bool):
        consecutive = len(values) > 2 and values[0] == 0 and values[-1] == len(values) - 1
        listed = f"{values[0]} to {values[-1]}" if consecutive else ", ".join(map(repr, values)) or "none"
        raise SelectionError(f"{trait}: got {value!r}, {owner} has {listed}")
    return value


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
        data: dict[str, Any] = page.data()
        opening, self._static, self._calls = data["opening"], static, calls_by_text(data)
        chosen: dict[str, Any] = {}
        if data["calls"]:
            call, head = data["calls"][opening["call"]], opening["head"]
            text = next(name for name, calls in self._calls.items() if call in calls)
            chosen = {"text": text, "layer": call["layer"], "nth": call["nth"], "token": opening["token"]}
            chosen["head"] = None if head is None else head_numbers(call)[head]
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
        return list(self._calls)

    def set_state(self, sync_data: dict[str, object]) -> None:
        """Set traits to the selection that the browser sends."""
        self._whole = True
        try:
            super().set_state(sync_data)
        finally:
            self._whole = False

    def __repr__(self) -> str:
        if not self._calls:
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
    def _call(self) -> Mapping[str, Any]:
        """The selected call, or the text's first call."""
        calls = self._calls[self.text]
        return next((call for call in calls if (call["layer"], call["nth"]) == (self.layer, self.nth)), calls[0])

    def _values(self, trait: str) -> tuple[Sequence[Any], str]:
        """Return the possible values of a trait with the others as they are, and their owner for an error message."""
        if trait == "view":  # `views` is empty until the page is displayed
            return self.views or [*VIEWS, *(f"panel {n}" for n in range(len(self.page["panels"])))], "the page"
        if trait in ("side", "text"):
            return list(TOKENS_OF) if trait == "side" else self.texts, "the page"
        layers, text = [call["layer"] for call in self._calls[self.text]], repr(self.text)
        if trait == "layer":
            return sorted(set(layers)), text
        if trait == "token":
            return range(len(self.page["texts"][self._call[TOKENS_OF[self.side]]]["tokens"]["text"])), text
        owner = f"layer {self.layer} of {text}"
        return range(layers.count(self.layer)) if trait == "nth" else head_numbers(self._call), owner

    @traitlets.validate("text", "layer", "nth", "head", "token", "side", "view")
    def _validate_choice(self, proposal: Any) -> object:
        trait, value = proposal["trait"].name, proposal["value"]
        selects = bool(self._calls) or trait in ("side", "view")
        if not selects and value not in ("", 0, None):
            raise SelectionError(f"{trait}: this page has no attention to choose from")
        return check_choice(trait, value, *self._values(trait)) if selects and value is not None else value

    @traitlets.observe("text", "layer", "side")
    def _reset_missing_choices(self, change: Any) -> None:
        """After text, layer or side was set from Python, reset any layer, call, head or token that the page lacks."""
        if self._whole or not self._calls:
            return
        with self.hold_sync():
            for trait in ("layer", "nth", "head"):
                values, _ = self._values(trait)
                if getattr(self, trait) not in (*values, None):
                    setattr(self, trait, None if trait == "head" else values[0])
            if change["name"] == "text" or (change["name"] == "side" and self._call["queries"] != self._call["keys"]):
                self.token = None
