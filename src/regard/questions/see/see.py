"""`regard.see`: look at texts or traces in one line of Python, as the command of that name does."""

from collections.abc import Iterable, Sequence
from typing import Any, overload

from regard.errors import RegardError
from regard.models.control import trace_control
from regard.models.load import load
from regard.models.model import Model
from regard.questions.see.answer import Seen, seen
from regard.text.neutral_sentences import SENTENCES
from regard.trace.trace import ShownTrace, Trace

NEEDED = {
    "references": "traces of the words: model.trace(['river', 'money'])",
    "control": "traces of neutral sentences: model.trace(regard.neutral_sentences('bank'))",
}


@overload
def see(
    texts: ShownTrace | Sequence[ShownTrace],
    word: str | None = None,
    *,
    references: Trace | Sequence[Trace] = (),
    control: Sequence[Trace] | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> Seen: ...
@overload
def see(
    texts: str | Sequence[str],
    word: str | None = None,
    *,
    references: str | Sequence[str] = (),
    control: Sequence[str] | None = None,
    target: str | Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    model: Model | str | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> Seen: ...
def see(
    texts: Any,
    word: str | None = None,
    *,
    references: Any = (),
    control: Any = None,
    target: str | Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    model: Model | str | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> Seen:
    """Look at a word in texts or traces, or without one at what is most worth a look: what `regard see` prints.

    Args:
        texts: one or several, or traces of one kind. Each window of a long text is shown as a text of its own, if it
            has the word.
        word: in every text.
        references: words to compare it with, each read as a text of its own. For traces, the traces of these words:
            `model.trace(["money", "river"])`.
        control: neutral sentences with {} in the word's place, which separate what the texts do to the word from what
            any sentence does. Default: sentences of the package. For traces, traces of such sentences:
            `model.trace(regard.neutral_sentences("bank"))`. Default: none, and movement isn't reported.
        target: of an encoder-decoder, what its decoder reads: one, or one for each text (`model.generate` writes one).
        window, stride: read each text in overlapping windows of so many tokens, as `Model.trace` does.
        model: what `regard.load` gives or takes. Default: the default model.
        layer, head: also show these. top: how many tokens to name.

    Returns a `Seen`, which shows itself, has the numbers as `.summary`, the sentences as `.findings()`, the traces
    as `.traces`, and draws itself with `.plot()`.

    Raises:
        RegardError: as `regard.load` and `Model.trace`, or the word is not in the texts, there is no such layer or
            head, or a trace comes with target, window, stride or model.
    """
    listed = [texts] if isinstance(texts, str | ShownTrace) else texts
    if isinstance(listed, Sequence) and listed and all(isinstance(each, ShownTrace) for each in listed):
        for name, value in (("target", target), ("window", window), ("stride", stride), ("model", model)):
            if value is not None:
                raise RegardError(f"{name}: it chooses how texts are traced, leave it out for a trace")
        traces: Any = listed
        references = listed_traces("references", references)
        control = None if control is None else listed_traces("control", control)
    else:
        given, words = _listed_texts_to_trace("texts", texts), _listed_texts_to_trace("references", references)
        targets = None if target is None else _listed_texts_to_trace("target", target)
        opened = model if isinstance(model, Model) else load(model)
        traces = opened.trace(given, target=targets, window=window, stride=stride)
        compared: Any = opened.trace(words, target=words if opened.pairs else None) if words else []
        references = [each.sides[0] for each in compared]
        sentences = SENTENCES if control is None else control
        control = trace_control(opened, traces, word, sentences) if words and word is not None else None
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise RegardError(f"top: given {top!r}, needs a number from 1 on")
    return seen(traces, word, references=references, control=control, layer=layer, head=head, top=top)


def listed_traces(what: str, given: object) -> "list[Trace]":
    """Return references or control as a list, a single trace as a list of itself. Raises RegardError for others."""
    listed: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, Trace) else [given]
    for trace in listed:
        if not isinstance(trace, Trace):
            raise RegardError(f"{what}: given {type(trace).__name__}, needs {NEEDED[what]}")
    return listed


def _listed_texts_to_trace(what: str, texts: str | Sequence[str]) -> list[str]:
    if not isinstance(texts, (str, Sequence)):
        raise RegardError(f"{what}: given {type(texts).__name__}, needs a text or a list of them")
    return [texts] if isinstance(texts, str) else list(texts)
