"""Schematic figures of whole models: how a text is embedded, what a block is made of, where cross-attention sits."""

from collections.abc import Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from drawings.sheet import (
    INPUT,
    KEY,
    OUTPUT,
    PLAIN,
    QUERY,
    SIGNS,
    VALUE,
    arrow,
    box,
    path,
    sheet,
    tensor,
    write,
)
from regard.nn.config import TransformerConfig

SHOWN = 16  # components of a vector that a strip shows


def embedding_process(
    tokens: Sequence[str],
    ids: Sequence[int],
    learned: Float[Tensor, "L M"],
    vocabulary: int,
    added: Float[Tensor, "L M"] | None = None,
    mixed: Float[Tensor, "L M"] | None = None,
    total: str = "= input of\nthe first layer",
) -> Figure:
    """Draw the way from tokens to the input of the first layer, a column a token, with ids and numbers.

    vocabulary: rows of the table. added: positional encodings, where there are any. mixed: what attention makes of
    their sums, where the way goes on to it. total: the name of these sums. Of wide vectors the first components are
    drawn.
    """
    each, tall, box_tall = 0.82 if len(tokens) < 9 else 0.68, 0.9, 0.62
    middle = (each - 0.1) / 2
    rows = 1 + 2 * (added is not None) + (mixed is not None)
    height = 1.75 + rows * (tall + 0.38) + box_tall * (mixed is not None)
    title = "From tokens to vectors" if mixed is None else "From a text to vectors that know it"
    figure, axes = sheet(max(5.4, 1.9 + each * len(tokens)), height, title)
    top = height - 0.75
    width = learned.shape[1]
    strips = [(f"row of the table\n{vocabulary:,} × {width}", learned, INPUT)]
    if added is not None:
        strips += [("+ position", added, KEY), (total, learned + added, OUTPUT)]
    if mixed is not None:
        strips[-1] = ("= X", *strips[-1][1:])
        strips.append(("y, which\nknows the text", mixed, OUTPUT))
    write(axes, 0.2, top, "token", align="left")
    write(axes, 0.2, top - 0.5, "its id", align="left")
    for n, (token, number) in enumerate(zip(tokens, ids, strict=True)):
        x = 1.7 + n * each
        box(axes, x, top - 0.15, each - 0.1, 0.3, token, INPUT, size=8 if len(token) < 9 else 6.5)
        arrow(axes, (x + middle, top - 0.15), (x + middle, top - 0.38))
        write(axes, x + middle, top - 0.5, str(number))
        arrow(axes, (x + middle, top - 0.62), (x + middle, top - 0.85))
    for row, (name, values, colour) in enumerate(strips):
        base = top - 0.9 - tall - row * (tall + 0.38)
        if row == 3:
            base -= box_tall
            box(axes, 1.7, base + tall + 0.22, each * len(tokens) - 0.1, 0.4,
                "attention: each word takes some of every word, most of those like it", QUERY, size=8.5)  # fmt: skip
            for n in range(len(tokens)):
                x = 1.7 + n * each + middle
                arrow(axes, (x, base + tall + 0.94), (x, base + tall + 0.64))
                arrow(axes, (x, base + tall + 0.22), (x, base + tall + 0.02))
        write(axes, 0.2, base + tall / 2, name, align="left", size=8.5)
        drawn = values[:, :SHOWN]
        limit = float(drawn.abs().max())
        for n in range(len(tokens)):
            cell = (0.3, tall / drawn.shape[1])
            tensor(
                axes, 1.7 + n * each + middle - 0.15, base, drawn[n], colour, "", cell=cell, sizes=False, limit=limit
            )
    shown = f"the first {SHOWN} of {width} numbers are drawn" if width > SHOWN else f"{width} numbers"
    write(axes, 0.2, 0.16, f"{shown}; {SIGNS}", size=7.5, align="left")
    return figure


def blocks(config: TransformerConfig, tokens: int | None = None, *, mark_tables: bool = False) -> Figure:
    """Draw the blocks of a transformer as its config has them: norms, residuals, masks, widths, how many layers.

    tokens: of the text, where the sizes of what flows are to be written. mark_tables: frame the tables of embeddings.
    """
    sides = [side for side in ("encoder", "decoder") if side in config.kind.split("-")]
    both = len(sides) == 2
    figure, axes = sheet(4.15 * len(sides), 2.05 + PART * (3 if both else 2))
    length = "tokens" if tokens is None else str(tokens)
    for place, side in enumerate(sides):
        top = _stack(axes, config, place * 4.15, side, crossing=both and place == 1, length=length)
        if mark_tables:
            frame = Rectangle((place * 4.15 + 0.4, 0.1), 3.0, 0.46, fill=False, edgecolor="black", linewidth=2)
            axes.add_patch(frame)
        if both and place == 0:  # what the encoder made goes to the decoder's cross-attention
            level = FOOT + PART + (0.73 if config.norm_first else 0.4)
            path(axes, [(1.9, top), (1.9, top + 0.25), (4.2, top + 0.25), (4.2, level), (4.68, level)], colour=KEY)
            write(axes, 3.0, top + 0.38, "keys and values", size=8, colour=KEY)
    return figure


FOOT, PART = 0.8, 1.34  # inches: where a stack's first block begins, and the height of each of its parts


def _stack(axes: Axes, config: TransformerConfig, x: float, side: str, *, crossing: bool, length: str) -> float:
    """Draw one stack from its input at the foot upwards; returns the height at which its states come out."""
    sees = "each token sees itself and those before" if side == "decoder" else "each token sees the whole text"
    heads = f"{config.heads} heads × {config.head_width}"
    parts = [(f"self-attention, {heads}\n{sees}", QUERY)]
    if crossing:
        parts.append((f"cross-attention, {heads}\neach token sees the other text", KEY))
    parts.append(
        (f"feed-forward, {config.d_model} → {config.hidden_width} → {config.d_model}\neach token alone", VALUE)
    )
    added = f" + {config.positions} positions" if config.positions in ("learned", "sinusoidal") else ""
    added += " + segments" if config.segments else ""
    added += ", norm" if config.norm_embeddings else ""
    added = added.replace(" + segments", "\n+ segments")
    table = f"table {config.vocabulary:,} × {config.d_model}{added}"
    box(axes, x + 0.45, 0.15, 2.9, 0.36, table, INPUT, size=7 if "\n" in added else 8)
    norm = "RMS norm" if config.norm == "rms" else "layer norm"
    middle, at = x + 1.9, FOOT
    tall = PART * len(parts)
    frame = FancyBboxPatch((x + 0.15, FOOT - 0.06), 3.35, tall + 0.02, boxstyle="round,pad=0,rounding_size=0.1",
                           fill=False, edgecolor=PLAIN, linewidth=1, linestyle="--")  # fmt: skip
    axes.add_patch(frame)
    write(axes, x + 3.64, FOOT + tall / 2, f"{side} block × {config.layers}", turn=90)
    arrow(axes, (middle, 0.51), (middle, at + 0.14))
    for text, colour in parts:
        places = (0.14, 0.46) if config.norm_first else (0.98, 0.12)  # of the norm, and of what it is for
        box(axes, x + 0.95, at + places[0], 1.9, 0.22, norm, PLAIN, size=7.5)
        box(axes, x + 0.55, at + places[1], 2.7, 0.54, text, colour, size=8)
        plus = at + (1.14 if config.norm_first else 0.8)
        if config.norm_first:
            arrow(axes, (middle, at + 0.36), (middle, at + 0.46))
        write(axes, middle, plus, "⊕", size=12, colour="black")
        arrow(axes, (middle, plus - 0.14), (middle, plus - 0.06))
        path(axes, [(middle, at), (x + 0.3, at), (x + 0.3, plus), (middle - 0.08, plus)])
        above = at + PART + (0.14 if config.norm_first else 0.12)
        if not config.norm_first:
            arrow(axes, (middle, plus + 0.07), (middle, at + 0.98))
        start = plus + 0.07 if config.norm_first else at + 1.2
        last = colour == VALUE
        arrow(axes, (middle, start), (middle, at + PART + 0.12 if last else above))
        at += PART
    out = at + 0.12
    ends = side == "encoder" and config.kind == "encoder-decoder"
    after = ", after a last norm" if ends and config.norm_first else ""
    write(axes, middle + 0.1, out - 0.03, f"{length} × {config.d_model}{after}", size=8, align="left")
    if ends:
        return out
    what = "contextual embeddings" if config.output == "none" else f"scores of {config.vocabulary:,} tokens"
    arrow(axes, (middle, out), (middle, out + 0.3))
    box(axes, x + 0.55, out + 0.32, 2.7, 0.4, f"last norm, then {what}" if config.norm_first else what, OUTPUT, size=8)
    return out


def diffusion_unet(text: tuple[int, int] = (77, 768), sizes: Sequence[tuple[int, int]] = ()) -> Figure:
    """Draw a diffusion model's U-Net and where its image queries look at the text's keys.

    text: tokens and width of the text encoder's states. sizes: side of the image's grid and channels of each level,
    from the finest; by default those of Stable Diffusion 1 (Rombach et al. 2022, "High-Resolution Image Synthesis with
    Latent Diffusion Models"), whose deepest level has cross-attention in its middle block alone.
    """
    levels = list(sizes) or [(64, 320), (32, 640), (16, 1280), (8, 1280)]
    figure, axes = sheet(10.4, 1.55 + 0.95 * len(levels), "Where a text-to-image model looks at its text")
    top = 0.85 + 0.95 * len(levels)
    box(axes, 7.9, top - 1.35, 2.2, 1.1, f"text encoder\n{text[0]} tokens × {text[1]}\nkeys and values", KEY)
    bus = [(7.9, top - 0.8), (7.6, top - 0.8)]
    for level, (side, channels) in enumerate(levels):
        y = top - 0.75 - level * 0.95
        deepest = level == len(levels) - 1
        x, width = 0.6 + level * 0.55, 1.7
        name = f"{side} × {side} grid\n{channels} channels"
        if deepest:
            box(axes, x, y, 6.7 - 2 * level * 0.55, 0.6, f"middle: {name.replace(chr(10), ', ')}", QUERY, size=8)
            path(axes, [*bus, (7.6, y + 0.3), (x + 6.7 - 2 * level * 0.55, y + 0.3)], colour=KEY)
            continue
        right = 7.3 - level * 0.55 - width
        box(axes, x, y, width, 0.6, name, QUERY, size=8)
        box(axes, right, y, width, 0.6, name, QUERY, size=8)
        arrow(axes, (x + width, y + 0.3), (right, y + 0.3), "copied across", colour=INPUT)
        arrow(axes, (x + width / 2 + 0.2, y), (x + width / 2 + 0.2, y - 0.35))
        arrow(axes, (right + width / 2 - 0.2, y - 0.35), (right + width / 2 - 0.2, y))
        for end in (x + width - 0.25, right + width - 0.25):
            path(axes, [*bus, (7.6, y + 0.78), (end, y + 0.78), (end, y + 0.6)], colour=KEY)
    write(axes, 0.6, top + 0.2, "noisy image in", align="left", size=8)
    write(axes, 7.3, top + 0.2, "what noise it holds", align="right", size=8)
    tokens = ", ".join(f"{side * side}" for side, _ in levels)
    write(axes, 0.3, 0.35, "each blue box holds cross-attention: one query for each place of its grid "
          f"({tokens} queries),\none key and value for each of the {text[0]} tokens",
          size=8, align="left")  # fmt: skip
    return figure
