"""`regard see`: what self-attention does to a word, or to every token of some texts."""

from pathlib import Path
from typing import Any

from regard.cli import clock
from regard.cli.early_checks import EarlyChecks, no_windows
from regard.cli.options import (
    All,
    FigureFile,
    FollowedWord,
    Head,
    JsonFile,
    Layer,
    ModelName,
    Next,
    OpenFile,
    References,
    SaveAttentionOutputs,
    SaveDtype,
    SaveFile,
    SaveHeads,
    SaveLayers,
    StaticFile,
    Stride,
    Targets,
    Texts,
    Top,
    Window,
)
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.source import Source, trace_word, traced
from regard.errors import RegardError
from regard.files import check_readable


def see(
    texts: Texts = None,
    targets: Targets = None,
    word: FollowedWord = None,
    references: References = None,
    model: ModelName = None,
    layer: Layer = None,
    head: Head = None,
    top: Top = 5,
    next_token: Next = False,
    window: Window = None,
    stride: Stride = None,
    static: StaticFile = None,
    everything: All = False,
    figure: FigureFile = None,
    json_file: JsonFile = None,
    open_file: OpenFile = None,
    save_file: SaveFile = None,
    save_layers: SaveLayers = None,
    save_heads: SaveHeads = None,
    save_dtype: SaveDtype = None,
    save_attention_outputs: SaveAttentionOutputs = False,
) -> None:
    """Show what self-attention does to a word in one text or several, on a real model."""
    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
    if word is not None and not word.strip():
        raise RegardError("--word is empty: give a word of the text")
    words = _references(references, word, open_file)
    if static is not None and not words:
        raise RegardError("--static needs --word and --with: it compares words' static vectors")
    given = Source(texts or [], targets or [], model, window, stride, open_file)
    given.check("see")
    saved = TraceFile(save_file, save_layers, save_heads, save_dtype, save_attention_outputs)
    outputs = Outputs(figure, json_file, saved)
    outputs.check()
    if static not in (None, "learned"):
        check_readable(Path(static), "--static")
    early = EarlyChecks.of(given)
    early.check_numbers(layer, head)
    early.check_word(word)
    early.check_saved_parts(saved)
    if window is not None:
        early.check_kind(True, no_windows)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.summary import summarise
    from regard.explain.window_texts import unfold
    from regard.views.json import summary_data
    from regard.views.terminal.brief import show as show_brief
    from regard.views.terminal.layout import put
    from regard.views.terminal.summary import show
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(json_file)
    with errors.status("loading and tracing …"):
        found = traced(given, needs_model=next_token)
        unfolded = None if window is None else unfold(found.traces, word)
        traces = found.traces if unfolded is None else unfolded.traces
        references_traced = [trace_word(found.model, each, "--with") for each in words]
        seen = summarise(
            traces,
            word,
            references=references_traced,
            layer=layer,
            head=head,
            top=top,
            names=found.names,
            lens_of=found.model if next_token else None,
            generated=found.generated,
            unfolded=unfolded,
        )
        if static is not None:
            seen = _with_static(seen, static, words, traces, references_traced)

        def draw(file: Path) -> list[str]:
            from regard.views.figures.summary import draw

            return draw(seen, traces, file, layer=layer, head=head)

        notes = outputs.write(traces=traces, draw=draw, data=lambda: summary_data(seen))
    if window is not None:  # unknown tokens are named of whole texts, not of windows
        put(unknown_first(of_traces(found.traces)), console)
    (show if everything else show_brief)(seen, console, clock.seconds())
    finish(console, errors, outputs.files, notes)


def _with_static(seen: Any, static: str, words: list[str], traces: Any, references: list[Any]) -> Any:
    """The summary with static vectors of the word and the reference words, of a file or of the model's own table."""
    from dataclasses import replace

    from regard.explain.static_words import learned_words, static_words
    from regard.text.word_vectors import read_static

    word = seen.word or ""
    if static != "learned":
        return replace(seen, static=static_words(read_static(Path(static), [word, *words]), word, words, static))
    first = traces[0].encoder if hasattr(traces[0], "encoder") else traces[0]
    of = f"the learned embeddings of {first.status.model}"
    return replace(seen, static=static_words(learned_words(word, first, references), word, words, of))


def _references(given: str | None, word: str | None, open_file: Path | None) -> list[str]:
    if given is None:
        return []
    if word is None:
        raise RegardError("--with needs --word: it compares that word with others")
    if open_file is not None:
        raise RegardError("--with needs the model, to read its words: it cannot go with --open")
    words = [each.strip() for each in given.split(",")]
    if not all(words):
        raise RegardError(f"--with {given!r}: needs words separated by commas, one is empty")
    return list(dict.fromkeys(words))
