"""Where a verb's traces come from: texts traced by a model, or a file that was saved before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError

Both = list[tuple[str, str | None]]  # texts, each with its target where there is one
MOST_WRITTEN = 256  # tokens of a target that the model writes itself


@dataclass
class Given:
    """What a person gave to be looked at: texts, with a target each where the model reads pairs, or a file."""

    texts: Sequence[str] = ()
    targets: Sequence[str] = ()
    model: str | None = None
    window: int | None = None
    stride: int | None = None
    file: Path | None = None

    def check(self, verb: str) -> None:
        """What can be refused before a model is loaded or a file is read."""
        from regard.tokens import check_text

        if self.file is not None:
            for option, given in (("TEXT", self.texts), ("--target", self.targets), ("--window", self.window)):
                if given:
                    raise RegardError(
                        f"--open and {option}: the saved traces have texts of their own, give one of both"
                    )
        elif not self.texts:
            raise RegardError(f"no text given: regard {verb} TEXT [TEXT ...]")
        for name, many in (("text", self.texts), ("target", self.targets)):
            for number, text in enumerate(many, 1):
                check_text(text, f"{name} {number}" if len(many) > 1 else name)
        if self.targets and len(self.targets) != len(self.texts):
            counts = f"given {len(self.targets)} for {len(self.texts)} text(s)"
            raise RegardError(f"--target: {counts}, needs one for each text, in their order")
        if self.stride is not None and self.window is None:
            raise RegardError("--stride needs --window: it says how far one window is past the last")
        if self.window is not None and self.targets:
            raise RegardError("--window: texts with a target cannot be read in windows")


@dataclass
class Traced:
    """traces: in the order given. texts: what they are of, each with its target, None where the model reads no pairs.

    model: as `regard.load` gives it, None where a file was opened without one. names: how token ids are spelled, None
    for as far as the texts tell. generated: of pairs, which targets the model wrote.
    """

    traces: list[Any]
    texts: Both
    model: Any = None
    names: Callable[[int], str] | None = None
    generated: list[bool] = field(default_factory=list)


def traced(given: Given, *, needs_model: bool = False) -> Traced:
    """Trace the texts, or open the file.

    needs_model: of a file, load its model too, which --model then has to name.
    """
    if given.file is not None:
        return _opened(given, needs_model)
    from regard.models.load import load

    model = load(given.model)
    names, texts = _names(model.tokenizer), list(given.texts)
    if given.window is not None:
        if model.pairs:
            raise RegardError(f"--window: {model.name} is an encoder-decoder, which cannot read a text in windows")
        windowed = [model.trace(text, window=given.window, stride=given.stride) for text in texts]
        return Traced(windowed, _alone(texts), model, names)
    if given.targets:
        targets = list(given.targets)
        both: Both = list(zip(texts, targets, strict=True))
        return Traced(model.trace(texts, target=targets), both, model, names, [False] * len(texts))
    if model.pairs:
        written = [_write(model, text) for text in texts]
        both = [(text, each.text) for text, each in zip(texts, written, strict=True)]
        return Traced([each.trace for each in written], both, model, names, [True] * len(texts))
    return Traced(model.trace(texts), _alone(texts), model, names)


def _alone(texts: Sequence[str]) -> Both:
    return [(text, None) for text in texts]


def _write(model: Any, text: str) -> Any:
    """The target that an encoder-decoder writes, the likeliest token each time."""
    most = min(MOST_WRITTEN, (model.limit or MOST_WRITTEN + 1) - 1)
    written = model.generate(text, new_tokens=most, do_sample=False)
    if written.ended == "length":
        written.trace.status.notes += (f"the target ends after {most} tokens because no more were asked for",)
    return written


def trace_word(model: Any, word: str, option: str) -> Any:
    """A reference word as a text of its own; of an encoder-decoder, as its encoder reads it."""
    try:
        if not model.pairs:
            return model.trace(word)
        return model.trace(word, target=word).encoder  # which no target reaches
    except RegardError as error:
        raise RegardError(f"{option} {word[:40]!r}: {error}") from None


def _opened(given: Given, needs_model: bool) -> Traced:
    from regard.captures import open as read

    assert given.file is not None
    traces = read(given.file)
    traces = traces if isinstance(traces, list) else [traces]
    texts = [
        (each.encoder.text, each.decoder.text) if hasattr(each, "encoder") else (each.text, None) for each in traces
    ]
    if needs_model and given.model is None:
        raise RegardError("--next with --open needs --model: a file does not hold the language head")
    if given.model is None:
        return Traced(traces, texts)
    if needs_model:
        from regard.models.load import load

        model = load(given.model)
        return Traced(traces, texts, model, _names(model.tokenizer))
    from regard.models.load import load_tokenizer

    return Traced(traces, texts, None, _names(load_tokenizer(given.model)))


def _names(tokenizer: Any) -> Callable[[int], str] | None:
    from regard.tokens import readable

    return None if tokenizer is None else lambda number: readable(tokenizer, number)
