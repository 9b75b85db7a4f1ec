"""Show the interactive page with BertViz's functions and arguments: `head_view` and `model_view`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.attention.recording import Call, Calls
from regard.checks import from_zero
from regard.errors import RegardError
from regard.trace.any_attention import labelled, named_maps
from regard.views.save_page import attention_page
from regard.views.show import StaticView, show
from regard.web.assemble import Choice

if TYPE_CHECKING:
    from regard.web.widget import AttentionWidget

Tokens = Sequence[str] | None
Numbers = Sequence[int] | None
PIECES = re.compile("Ġ|▁|</w>")  # tokenizers' marks for blanks and word ends


def head_view(
    attention: Any = None, tokens: Tokens = None, *, prettify_tokens: bool = True, layer: int | None = None,
    heads: Numbers = None, encoder_attention: Any = None, decoder_attention: Any = None, cross_attention: Any = None,
    encoder_tokens: Tokens = None, decoder_tokens: Tokens = None, include_layers: Numbers = None,
    include_heads: Numbers = None, view: str = "tokens", file: str | Path | None = None, **others: Any,
) -> "AttentionWidget | StaticView | Path":  # fmt: skip
    """Show lines between tokens, with the arguments of BertViz's `head_view`. Returns the result of `regard.show`.

    Args:
        attention: as in `regard.plot`, such as a tuple of layers (B, H, L, S). For a batch, item 0 is shown.
        tokens: a label for each query and key. Default: positions.
        prettify_tokens: remove Ġ, ▁ and </w>.
        layer, heads: open at this layer and the first of these heads. Default: the first layer, the mean of heads.
        encoder_attention, decoder_attention, cross_attention, encoder_tokens, decoder_tokens: for encoder-decoders.
        include_layers, include_heads: show only these layers or heads.
        view: the page's view to open at: "tokens" or "map".
        file: see `regard.show`.
        others: `html_action="view"`, BertViz's default. The page has no other options.

    Raises:
        RegardError: there is no attention, labels don't fit, or a layer, head, view or option doesn't exist.
    """
    for name, value in others.items():
        if (name, value) != ("html_action", "view"):
            raise RegardError(f"{name}: the page has no such option: leave it out")
    if view not in ("tokens", "map"):
        raise RegardError(f"view: got {view!r}, expected 'tokens' or 'map'")
    calls = Calls(None, ())
    for stack, weights, *both in (
        ("", attention, tokens, tokens),
        ("encoder", encoder_attention, encoder_tokens, encoder_tokens),
        ("decoder", decoder_attention, decoder_tokens, decoder_tokens),
        ("cross", cross_attention, decoder_tokens, encoder_tokens),
    ):
        queries, keys = (_without_marks(labels) if prettify_tokens else labels for labels in both)
        for entry in () if weights is None else named_maps(weights, include_layers):
            shown, path = labelled(entry, queries, keys), f"{stack} {entry.name}".strip().replace(" ", ".")
            calls[path, 0] = Call(path, 0, "file", shown.weights, None, None, None, labels=shown.labels)
    page = attention_page(calls, None, None, 0, Choice(heads=include_heads), None, None)
    layers = [call.layer or 0 for call in calls.values()]
    if layer is not None and layer not in layers:
        raise RegardError(f"layer {layer!r} isn't in {sorted(set(layers))}")
    page.opening |= {"view": view, "call": 0 if layer is None else layers.index(layer)}
    if page.overview and (heads or layer is not None):
        page.overview["chosen"] = True
    if heads:
        page.opening["head"] = from_zero("head", heads[0], shown.weights.shape[0], "the page has")
    return show(page, file=file)


def model_view(attention: Any = None, tokens: Tokens = None, **options: Any) -> "AttentionWidget | StaticView | Path":
    """Show a small map of each head, with the arguments of BertViz's `model_view`. options: see `head_view`."""
    return head_view(attention, tokens, **{"view": "map"} | options)


def _without_marks(labels: Tokens) -> Tokens:
    return None if labels is None else [PIECES.sub("", str(label)) for label in labels]
