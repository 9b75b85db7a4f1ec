"""`regard.see`: look at texts in one line of Python, as the command of that name does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.models.control import trace_control
from regard.models.load import load
from regard.models.model import Model
from regard.text.neutral_sentences import SENTENCES
from regard.trace.display import see as see_traces

if TYPE_CHECKING:
    from regard.questions.see.answer import Seen


def see(
    texts: str | Sequence[str],
    word: str | None = None,
    *,
    references: str | Sequence[str] = (),
    control: Sequence[str] = SENTENCES,
    target: str | Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    model: Model | str | None = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> "Seen":
    """Trace texts and look at a word in them, or without one at what is most worth a look.

    Args:
        texts: one or several.
        word: in every text.
        references: words to compare it with, each read as a text of its own.
        control: neutral sentences with {} in the word's place, which tell what the texts do to the word beside the
            references from what any sentence does; by default those that come with the package.
        target: of an encoder-decoder, what its decoder reads: one, or one for each text (`model.generate` writes one).
        window, stride: read each text in overlapping windows of so many tokens, as `Model.trace` does; each window is
            shown as a text of its own, those alone that have the word.
        model: what `regard.load` gives or takes; None for the default model.
        layer, head: single heads to show beside the mean of heads. top: how many tokens to name.

    Returns a `Seen`, which shows itself, has the numbers as `.summary`, the sentences as `.findings()`, the traces
    as `.traces`, and draws itself with `.plot()`.

    Raises:
        RegardError: as `regard.load`, `Model.trace` and `Trace.see`.
    """
    opened = model if isinstance(model, Model) else load(model)
    given, words = _listed_texts_to_trace("texts", texts), _listed_texts_to_trace("references", references)
    targets = None if target is None else _listed_texts_to_trace("target", target)
    traces: Any = opened.trace(given, target=targets, window=window, stride=stride)
    compared: Any = opened.trace(words, target=words if opened.pairs else None) if words else []
    beside = [each.sides[0] for each in compared]
    neutral = trace_control(opened, traces, word, control) if words and word is not None else None
    return see_traces(traces, word, references=beside, control=neutral, layer=layer, head=head, top=top)


def _listed_texts_to_trace(what: str, texts: str | Sequence[str]) -> list[str]:
    if not isinstance(texts, (str, Sequence)):
        raise RegardError(f"{what}: given {type(texts).__name__}, needs a text or a list of them")
    return [texts] if isinstance(texts, str) else list(texts)
