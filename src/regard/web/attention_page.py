"""Put the page of any attention together: of maps, recorded calls or tensors, with labels, and without a trace."""

from collections.abc import Sequence
from typing import Any

from regard.attention.given_map import of_heads
from regard.checks import chosen_numbers
from regard.errors import RegardError
from regard.explain.wording import named, number
from regard.images import Patches, read_picture
from regard.text.tokens import Token
from regard.trace.any_attention import PatchGrid, ShownMap, labelled, named_maps
from regard.web.assemble import Choice, check_page_size
from regard.web.call import DENSE, CallName, call_data
from regard.web.numbers import ENCODINGS, NumberStore, vector_bytes_in_page
from regard.web.overview import texts_stage
from regard.web.page import Page, status_lines, text_data


def attention_page(
    attention: Any, tokens: Sequence[Any] | None, key_tokens: Sequence[Any] | None, batch: int, choice: Choice,
    title: str | None, findings: Sequence[str] | None, grid: Sequence[int] | None = None, image: Any = None,
) -> Page:  # fmt: skip
    """Put the page of any attention together. Arguments and errors are those of `save_page`."""
    if choice.numbers not in ENCODINGS:
        raise RegardError(f"numbers: given {choice.numbers!r}, needs {' or '.join(map(repr, ENCODINGS))}")
    layers, heads = chosen_numbers("layer", choice.layers), chosen_numbers("head", choice.heads)
    picture = None if image is None else read_picture(image)
    shown: list[ShownMap] = []
    images: dict[tuple[str, ...], tuple[str, Patches | None]] = {}  # by the names of their tokens
    for entry in named_maps(attention, layers):
        queries, keys = tokens, key_tokens
        if grid is not None or picture is not None:
            own = PatchGrid.of(entry, grid)
            names, square = own.tokens(), entry.weights.full_shape[2] == entry.weights.full_shape[3]
            queries, keys = names if square and tokens is None else tokens, names if key_tokens is None else key_tokens
            patches = None
            if picture is not None:
                width, height = map(float, picture.size)
                patches = Patches(picture, own.rows, own.columns, own.first, (0.0, 0.0, width, height))
            images[tuple(token.text for token in names)] = f"image, {own}", patches
        shown.append(labelled(entry, queries, keys, batch))
    maps, size = [of_heads(entry.weights, heads, entry.layer or 0) for entry in shown], 0
    for entry, weights in zip(shown, maps, strict=True):  # what is too large is refused before anything is computed
        count = weights.shape[0] * weights.shape[1] * weights.shape[2]
        if weights.given is None:
            vectors = (tuple(tensor.shape[1:]) for tensor in (weights.query, weights.key))
            size += sum(vector_bytes_in_page(shape, choice.numbers) for shape in vectors)
            continue
        if count > DENSE:
            raise RegardError(
                f"page: {entry.name or 'the map'} has {count:,} weights without queries and keys, {DENSE:,} are the "
                "most: choose heads (heads=), or draw it with regard.plot"
            )
        size += 4 * count
    check_page_size(size * 4 // 3, choice.limit)
    sizes = {tuple(weights.shape) for weights in maps}
    alike = ", {} heads of {} × {} tokens".format(*sizes.pop()) if len(sizes) == 1 else ""
    called = f"attention weights of {len(shown)} calls{alike}" if shown[1:] else shown[0].name or "attention weights"
    page = Page(title or called + shown[0].item, findings or (), layers=layers, heads=heads)
    page.numbers = NumberStore(choice.numbers)
    calls: dict[int, int] = {}
    texts: dict[tuple[str, ...], int] = {}
    for entry, weights in zip(shown, maps, strict=True):
        both, layer = [tuple(token.text for token in labels.tokens) for labels in entry.labels], entry.layer or 0
        for role, labels, words in zip(("queries", "keys"), entry.labels, both, strict=True):
            if words not in texts:
                name = f"{'tokens' if both[0] == both[1] else role} {len(texts) + 1}"
                name, patches = images.get(words, (name, None))
                texts[words] = page.add_text(text_data(name, labels.text, labels.tokens, patches=patches))
        nth, path = calls.get(layer, 0), entry.name or "attention"
        call = CallName(layer, nth, texts[both[0]], texts[both[1]], path=path)
        calls[layer] = call.nth + 1
        chosen = None if weights.shape[0] == entry.weights.shape[0] else heads
        page.add_call(call_data(weights, call, page.numbers, head_numbers=chosen))
    exact = f"The weights on this page are within {page.largest_difference():.1e} of those of the calls."
    grids = dict.fromkeys(f"Tokens of an {name}." for name, _ in images.values())
    weights_of = {entry.layer or 0: entry.weights for entry in shown}
    if "picture" in page.texts[0]:
        page.overview = {"kind": "image"}
    elif len(page.texts) == 1:
        page.overview = texts_stage(page, [(shown[0].labels[0].tokens, weights_of)])
        page.findings = page.findings or strongest_link(page, shown[0].labels[0].tokens)
    page.opening["view"] = "overview" if page.overview else "map"
    page.status = [exact, *grids, *status_lines([], page)[1:]]
    return page


def strongest_link(page: Page, tokens: Sequence[Token]) -> list[str]:
    """Write a sentence about the most distinctive link of a short text; none without such a link."""
    data: Any = page.overview or {"links": [None]}
    if not data["links"][0]:
        return []
    query, key, call, h, weight = data["links"][0][0]
    data = page.calls[call]
    place = f"layer {data['layer']}, head {(data['head_numbers'] or [*range(data['heads'])])[h]}"
    return [f"{named(tokens, query)} attends unusually strongly to {named(tokens, key)} ({number(weight)}, {place})."]
