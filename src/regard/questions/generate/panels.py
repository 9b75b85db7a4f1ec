"""Make the panels of what a model wrote: the text with bars, how likely each token was, what else was likely."""

from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Panel, Shares, Strip, Table
from regard.questions.generate.sentences import SURE, prompt_words
from regard.questions.generate.writing import WrittenToken
from regard.text.quoting import quoted, visible
from regard.text.word_pieces import spelling

if TYPE_CHECKING:
    from regard.questions.generate.answer import Generation, Written

LOOKED_AT = "What it looked at"
NAMED = 3  # other likely tokens of a row
NEAR = 0.005  # to 0.5: with two decimals a probability does not say on which side it is


def of_generation(found: "Generation") -> list[Panel]:
    """Show the text with bars, or both texts side by side; the tokens least likely first, or where the texts part."""
    likely: list[Panel] = [_probabilities(name if found.push else "", own) for name, own in found.each]
    if found.steered is None:
        looked = _looked_at_in_prompt(found.plain)
        return [_with_bars(found.plain), _text_table(found), *likely, *looked, _least_likely(found.plain)]
    return [_text_table(found), *likely, _side_by_side(found)]


def others_likely_when_written(written: "Written", each: WrittenToken) -> list[tuple[str, float]]:
    """Say what the model found likely in the place of a written token, the likeliest first."""
    own = written.tokens[each.token].id
    return [(other.text, other.probability) for other in each.likeliest if other.id != own]


def _with_bars(written: "Written") -> Strip:
    """The text as it reads, a bar under what was written."""
    pieces, start = [""] * len(written.tokens), 0  # of each token what the text has until the next one
    places = [n for n, token in enumerate(written.tokens) if token.end > token.start]
    for n, after in zip(places, [*places[1:], None], strict=True):
        stop = len(written.text) if after is None else max(start, written.tokens[after].start)
        pieces[n], start = written.text[start:stop], stop
    chances = {each.token: each.probability for each in written.how.tokens}
    return Strip(
        name="Text", title="", tokens=pieces, values=[chances.get(n) for n in range(len(pieces))], unit="probability",
        note="A bar: how likely the model found the token; full at 1." if chances else "",
        full=1.0, running=True, screen=True, brief=True,
    )  # fmt: skip


def _probabilities(name: str, written: "Written") -> Strip:
    own = written.how.tokens
    title = f"How likely each written token was{', ' if name else ''}{name}"
    return Strip(
        name=title, title=title, tokens=[each.text for each in own], values=[each.probability for each in own],
        unit="probability", picture=True, note="As the model gives them, temperature aside.",
        tab="How likely" * bool(name),
    )  # fmt: skip


def _looked_at_in_prompt(written: "Written") -> list[Panel]:
    """The prompt by whole words, each by what it got while all of it was written; none where nothing was."""
    words = prompt_words(written.how, written.tokens)
    largest = max((share for _, share in words if share is not None), default=0.0)
    if not written.how.tokens or largest == 0:
        return []
    grey = [n for n, (_, share) in enumerate(words) if share is None]
    strip = Strip(
        name=LOOKED_AT, title="What it looked at in its prompt while it wrote, by whole words", unit="attention",
        tokens=[_shown_word(written, word) for word, _ in words],
        values=[sum(written.how.received[n] for n in word) for word, _ in words], full=largest, special=grey,
        note=f"Mean of all layers, heads and rows that wrote; full at {largest:.3f}."
        + " Special tokens and attention sinks are in grey." * bool(grey),
    )  # fmt: skip
    return [strip]


def _shown_word(written: "Written", word: range) -> str:
    """A word as the text has it; a line break or a blank by its sign."""
    return spelling(written.tokens, word) or visible("".join(written.tokens[n].text for n in word))


def _text_table(found: "Generation") -> Table:
    """All of what was written; of a steered text beside the plain one."""
    if found.steered is None:
        rows: list[list[Cell]] = [[found.plain.given, found.plain.new]]
        return Table(name="Text", title="Text", columns=[Column("given"), Column("written")], rows=rows)
    rows = [[own.text for _, own in found.each]]
    columns = [Column(name) for name, _ in found.each]
    return Table(name="Texts", title="", columns=columns, rows=rows, screen=True)


def _least_likely(written: "Written") -> Table:
    every = sorted(written.how.tokens, key=lambda each: each.probability)
    rows: list[list[Cell]] = []
    for n in every:
        others = [(quoted(text), chance) for text, chance in others_likely_when_written(written, n)[:NAMED]]
        rows.append([f"{n.token}", quoted(n.text), n.probability, Shares(others, digits=2, one_line=True)])
    columns = [
        Column("token"), Column("written"), Column("probability", 2, bar=True),
        Column("others likely there"),
    ]  # fmt: skip
    return Table(name="Least likely first", title="Least likely first", columns=columns, rows=rows, screen=bool(rows))


def _side_by_side(found: "Generation") -> Table:
    """Both texts token by token, from the first token on that is another."""
    start = found.parts_at or 0
    counted = [own.how.tokens[start:] for _, own in found.each]
    rows: list[list[Cell]] = []
    for n in range(max(map(len, counted), default=0)):
        row: list[Cell] = [f"{start + n + 1}"]
        for own in counted:
            row += [quoted(own[n].text), own[n].probability] if n < len(own) else ["", None]
        rows.append(row)
    both = [(Column(name), Column("probability", 2, bar=True)) for name, _ in found.each]
    columns = [Column("token"), *both[0], *both[1]]
    title = "Token by token" + (", from where they part" if found.parts_at is not None else "")
    note = "Tokens are counted from the first that was written."
    return Table(name="Token by token", title=title, note=note, columns=columns, rows=rows, screen=True)
