"""Show the interactive page with BertViz's functions and arguments: `head_view` and `model_view`."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.attention.recording import Call, Calls
from regard.checks import from_zero
from regard.errors import RegardError
from regard.trace.any_attention import labelled, named_maps
from regard.views.save_page import attention_page
from regard.views.show import StaticView, show
from regard.web.assemble import Choice
from regard.web.html_file import html_parts
from regard.web.page import Page

if TYPE_CHECKING:
    from regard.web.widget import AttentionWidget

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
) -> "PageHTML | AttentionWidget | StaticView | Path":  # fmt: skip
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
) -> "PageHTML | AttentionWidget | StaticView | Path":  # fmt: skip
    """Show a small map of each head, with the arguments of BertViz's `model_view`.

    For other arguments, see `head_view`. include_heads: show only these heads. display_mode: not supported, because the
    page follows the browser's light or dark setting.
    """
    return _show_page_at_view("map", locals())


def _show_page_at_view(view: str, arguments: dict[str, Any]) -> "PageHTML | AttentionWidget | StaticView | Path":
    """Show a page for BertViz's arguments, by name, opened at a view."""
    for name in ("sentence_b_start", "display_mode"):
        if arguments.get(name) is not None:
            raise RegardError(f"{name}: the page has no such option: leave it out")
    if arguments["html_action"] not in ("view", "return"):
        raise RegardError(f"html_action: got {arguments['html_action']!r}, expected 'view' or 'return'")
    calls = Calls(None, ())
    for stack, names in STACKS.items():
        tokens = [arguments[name] for name in names]
        if arguments["prettify_tokens"]:
            tokens = [None if labels is None else [PIECES.sub("", str(token)) for token in labels] for labels in tokens]
        for entry in () if arguments[stack] is None else named_maps(arguments[stack], arguments["include_layers"]):
            shown = labelled(entry, *tokens)
            path = f"{stack.removesuffix('attention').rstrip('_')} {entry.name}".strip().replace(" ", ".")
            calls[path, 0] = Call(path, 0, "file", shown.weights, None, None, None, labels=shown.labels)
    page = attention_page(calls, None, None, 0, Choice(heads=arguments.get("include_heads")), None, None)
    layer, heads, layers = arguments.get("layer"), arguments.get("heads"), [call.layer or 0 for call in calls.values()]
    if layer is not None and layer not in layers:
        raise RegardError(f"layer {layer!r} isn't in {sorted(set(layers))}")
    page.opening |= {"view": view, "call": 0 if layer is None else layers.index(layer)}
    if page.overview and (heads or layer is not None):
        page.overview["chosen"] = True
    if heads:
        page.opening["head"] = from_zero("head", heads[0], shown.weights.shape[0], "the page has")
    return show(PageHTML(page)) if arguments["html_action"] == "view" else PageHTML(page)
