"""The page as a widget of a notebook: what is chosen on it can be read and set from Python, as traits.

This module needs anywidget (the extra `notebook`); `regard.show` makes the widget.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import display

from regard.errors import RegardError
from regard.web import selection
from regard.web.built_page import built_program
from regard.web.page import Page


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
        self._choices = selection.calls_on_page(data)
        chosen: dict[str, Any] = {}
        if page.calls:
            call, head = page.calls[opening["call"]], opening["head"]
            named = None if head is None else (call["head_numbers"] or range(call["heads"]))[head]
            chosen = {"layer": call["layer"], "nth": call["nth"], "head": named, "token": opening["token"]}
            chosen["text"] = selection.text_name_on_page(data, opening["call"])
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
    def _call(self) -> selection.Call:
        found = selection.chosen_call(self._choices, self.text, self.layer, self.nth)
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
            return selection.check_text_on_page(self._choices, value)
        if name == "layer":
            return selection.check_layer_on_page(self._choices, self.text, value)
        if name == "nth":
            count = sum(call.layer == self.layer for call in self._choices[self.text])
            return selection.check_number("call", value, range(count), f"layer {self.layer} of {self.text!r}")
        if name == "head":
            return selection.check_number("head", value, self._call.heads, f"layer {self.layer} of {self.text!r}")
        if name == "token":
            count = self._call.tokens(self.side)  # type: ignore[arg-type]
            return selection.check_number("token", value, range(count), f"{self.text!r}")
        return selection.check_side(value) if name == "side" else selection.check_view(value, self.views)

    @traitlets.observe("text", "layer", "side")
    def _fit(self, change: Any) -> None:
        """Keep of layer, head and token what there still is, where one of the others was set from Python."""
        if self._whole or not self._choices:
            return
        calls, other_text = self._choices[self.text], change["name"] == "text"
        with self.hold_sync():
            if self.layer not in {call.layer for call in calls}:
                self.layer = calls[0].layer
            if selection.chosen_call(self._choices, self.text, self.layer, self.nth) is None:
                self.nth = 0
            if self.head is not None and self.head not in self._call.heads:
                self.head = None
            if other_text or (change["name"] == "side" and not self._call.same):
                self.token = None
