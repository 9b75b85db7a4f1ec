"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from pathlib import Path
from typing import Annotated

import typer

from regard.errors import RegardError
from regard.files import check_target

PICTURES = (".png", ".svg")


def see(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="One text or several.")] = None,
    word: Annotated[str | None, typer.Option(help="The word to follow; without it, an overview of all tokens.")] = None,
    references: Annotated[
        str | None,
        typer.Option("--with", metavar="W,W,...", help="Words to compare it with; they need not be in a text."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model folder or hub name; by default all-MiniLM-L6-v2.")] = None,
    layer: Annotated[int | None, typer.Option(help="Show single heads of this layer, counted from 0.")] = None,
    head: Annotated[
        int | None, typer.Option(help="Show this head, counted from 0, of --layer or of every layer.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many tokens to name.", min=1)] = 5,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture: .png or .svg.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything shown, at full precision.")
    ] = None,
    save_file: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the traces: .safetensors.")
    ] = None,
) -> None:
    """Show what self-attention does to a word in one text or several, on a real model."""
    texts = texts or []
    words = _references(references, word)
    _check(texts, word, figure, json_file, save_file)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from rich.console import Console

    from regard.explain import sight as explain
    from regard.models.load import load
    from regard.trace import save
    from regard.views.terminal import show

    notes: list[str] = []
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    with errors.status("loading the model and tracing …"):
        opened = load(model)
        traces = opened.trace(texts)
        named = opened.trace(words) if words else []
        seen = explain.see(traces, word, references=named, layer=layer, head=head, top=top)
    if figure is not None:
        from regard.views.figures import draw

        notes = draw(seen, traces, figure, layer=layer, head=head)
    if json_file is not None:
        from regard.views.data import write_json

        write_json(seen, json_file)
    if save_file is not None:
        save(traces, save_file)
    show(seen, console)
    for note in notes:
        console.print(f"picture: {note}", style="dim", markup=False)
    for file in (figure, json_file, save_file):
        if file is not None:
            console.print(f"wrote {file}", style="dim", markup=False)


def _references(given: str | None, word: str | None) -> list[str]:
    if given is None:
        return []
    if word is None:
        raise RegardError("--with needs --word: it compares that word with others")
    words = [each.strip() for each in given.split(",")]
    if not all(words):
        raise RegardError(f"--with {given!r}: needs words separated by commas, one is empty")
    return list(dict.fromkeys(words))


def _check(
    texts: list[str], word: str | None, figure: Path | None, json_file: Path | None, save_file: Path | None
) -> None:
    """What can be refused before a model is loaded."""
    from regard.tokens import check_text

    if word is not None and not word.strip():
        raise RegardError("--word is empty: give a word of the text")
    if not texts:
        raise RegardError("no text given: regard see TEXT [TEXT ...]")
    for number, text in enumerate(texts, 1):
        check_text(text, f"text {number}" if len(texts) > 1 else "text")
    for option, file, kinds in (
        ("--figure", figure, PICTURES),
        ("--json", json_file, (".json",)),
        ("--save", save_file, (".safetensors",)),
    ):
        if file is not None:
            check_target(file, kinds, option)
