"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from pathlib import Path
from typing import Any

from regard.cli.options import (
    FigureFile,
    FollowedWord,
    Head,
    JsonFile,
    Layer,
    ModelName,
    References,
    SaveFile,
    Texts,
    Top,
)
from regard.errors import RegardError
from regard.files import check_target

PICTURES = (".png", ".svg")


def see(
    texts: Texts = None,
    word: FollowedWord = None,
    references: References = None,
    model: ModelName = None,
    layer: Layer = None,
    head: Head = None,
    top: Top = 5,
    figure: FigureFile = None,
    json_file: JsonFile = None,
    save_file: SaveFile = None,
) -> None:
    """Show what self-attention does to a word in one text or several, on a real model."""
    texts = texts or []
    words = _references(references, word)
    _check(texts, word, top, figure, json_file, save_file)

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
        traces = opened.trace(texts) if len(texts) > 1 else [opened.trace(texts[0])]
        named = [_trace_word(opened, each) for each in words]
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


def _trace_word(model: Any, word: str) -> Any:
    """A reference word as a text of its own."""
    try:
        return model.trace(word)
    except RegardError as error:
        raise RegardError(f"--with {word[:40]!r}: {error}") from None


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
    texts: list[str], word: str | None, top: int, figure: Path | None, json_file: Path | None, save_file: Path | None
) -> None:
    """What can be refused before a model is loaded."""
    from regard.tokens import check_text

    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
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
