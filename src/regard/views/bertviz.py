"""Show the interactive page with BertViz's functions and arguments: `head_view` and `model_view`."""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from regard.attention.recording import Call, Calls
from regard.checks import from_zero
from regard.errors import RegardError
from regard.trace.any_attention import labelled, named_maps
from regard.views.save_page import attention_page
from regard.views.show import show
from regard.web.assemble import Choice
from regard.web.html_file import html_parts
from regard.web.page import Page

Tokens = Sequence[str] | None
Numbers = Sequence[int] | None
PIECES = re.compile("Ġ|▁|</w>")  # tokenizers' marks for blanks and word ends
STACKS = {  # by attention argument: the arguments with its query and key tokens
    "attention": ("tokens", "tokens"),
    "encoder_attention": ("encoder_tokens", "encoder_tokens"),
    "decoder_attention": ("decoder_tokens", "decoder_tokens"),
    "cross_attention": ("decoder_tokens", "encoder_tokens"),
}


class PageHTML:
    """An interactive page as one HTML document, which `regard.show` and `regard.save_page` accept."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def page(self, choice: Any = None) -> Page:
        """Return the page itself. choice: ignored, because the page is complete."""
        return self._page

    @property
    def data(self) -> str:
        """The HTML document as text."""
        return b"".join(html_parts(self._page)).decode()

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.data)}" style="width:100%;height:40rem;border:0"></iframe>'


def head_view(
    attention: Any = None, tokens: Tokens = None, sentence_b_start: int | None = None, prettify_tokens: bool = True,
    layer: int | None = None, heads: Numbers = None, encoder_attention: Any = None, decoder_attention: Any = None,
    cross_attention: Any = None, encoder_tokens: Tokens = None, decoder_tokens: Tokens = None,
    include_layers: Numbers = None, html_action: str = "view",
) -> Any:  # fmt: skip
    """Show lines between tokens, with the arguments of BertViz's `head_view`.

    Args:
        attention: as in `regard.plot`, such as a tuple of layers (B, H, L, S). For a batch, item 0 is shown.
        tokens: a label for each query and key. Default: positions.
        sentence_b_start: not supported. The page shows both sentences together.
        prettify_tokens: remove Ġ, ▁ and </w>.
        layer, heads: open at this layer and the first of these heads. Default: the first layer, the mean of heads.
        encoder_attention, decoder_attention, cross_attention, encoder_tokens, decoder_tokens: for encoder-decoders.
        include_layers: show only these layers.
        html_action: "view" to return the result of `regard.show`, "return" for a `PageHTML`.

    Raises:
        RegardError: there is no attention, labels don't fit, a layer or head doesn't exist, or an argument isn't
            supported.
    """
    return _show_page_at_view("tokens", locals())


def model_view(
    attention: Any = None, tokens: Tokens = None, sentence_b_start: int | None = None, prettify_tokens: bool = True,
    display_mode: str | None = None, encoder_attention: Any = None, decoder_attention: Any = None,
    cross_attention: Any = None, encoder_tokens: Tokens = None, decoder_tokens: Tokens = None,
    include_layers: Numbers = None, include_heads: Numbers = None, html_action: str = "view",
) -> Any:  # fmt: skip
    """Show a small map of each head, with the arguments of BertViz's `model_view`.

    For other arguments, see `head_view`. include_heads: show only these heads. display_mode: not supported, because the
    page follows the browser's light or dark setting.
    """
    return _show_page_at_view("map", locals())


def _show_page_at_view(view: str, given: dict[str, Any]) -> Any:
    """Show a page for BertViz's arguments, opened at a view. given: the arguments by name."""
    for name in ("sentence_b_start", "display_mode"):
        if given.get(name) is not None:
            raise RegardError(f"{name}: the page has no such option: leave it out")
    if given["html_action"] not in ("view", "return"):
        raise RegardError(f"html_action: got {given['html_action']!r}, expected 'view' or 'return'")
    calls = Calls(None, ())
    for stack, names in STACKS.items():
        tokens = [given[name] for name in names]
        if given["prettify_tokens"]:
            tokens = [None if each is None else [PIECES.sub("", str(token)) for token in each] for each in tokens]
        for entry in () if given[stack] is None else named_maps(given[stack], given["include_layers"]):
            shown = labelled(entry, *tokens)
            path = f"{stack.removesuffix('attention').rstrip('_')} {entry.name}".strip().replace(" ", ".")
            calls[path, 0] = Call(path, 0, "file", shown.weights, None, None, None, labels=shown.labels)
    page = attention_page(calls, None, None, 0, Choice(heads=given.get("include_heads")), None, None)
    layer, heads, layers = given.get("layer"), given.get("heads"), [call.layer or 0 for call in calls.values()]
    if layer is not None and layer not in layers:
        raise RegardError(f"layer {layer!r} isn't in {sorted(set(layers))}")
    page.opening |= {"view": view, "call": 0 if layer is None else layers.index(layer)}
    if page.overview and (heads or layer is not None):
        page.overview["chosen"] = True
    if heads:
        page.opening["head"] = from_zero("head", heads[0], shown.weights.shape[0], "the page has")
    return show(PageHTML(page)) if given["html_action"] == "view" else PageHTML(page)
