"""Where a verb's traces come from: texts traced by a model, or a file that was saved before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.start import load_model
from regard.errors import RegardError

if TYPE_CHECKING:
    from rich.text import Text

    from regard.generation.generator import Generated
    from regard.models.model import Model
    from regard.trace.trace import Trace

Both = list[tuple[str, str | None]]  # texts, each with its target where there is one
MOST_WRITTEN = 256  # tokens of a target that the model writes itself


@dataclass
class Source:
    """What a person gave to be looked at: texts, with a target each where the model reads pairs, or a file."""

    texts: Sequence[str] = ()
    targets: Sequence[str] = ()
    model: str | None = None
    window: int | None = None
    stride: int | None = None
    file: Path | None = None
    chat: Path | None = None
    second: Sequence[str] = ()

    def check(self, verb: str, texts: str = "TEXT [TEXT ...]") -> None:
        """What can be refused before a model is loaded or a file is read. texts: how the verb calls its texts."""
        if self.file is not None:
            for option, given in (
                ("TEXT", self.texts), ("--target-text", self.targets), ("--window", self.window), ("--chat", self.chat),
                ("--second", self.second),
            ):  # fmt: skip
                if given:
                    raise RegardError(f"--open and {option}: the saved traces have their own texts, give one of them")
        elif self.chat is not None:
            if self.texts or self.targets or self.second or self.window is not None:
                raise RegardError("--chat replaces TEXT, --second, --target-text and --window: leave them out")
            read_chat_file(self.chat)
        elif not self.texts:
            raise RegardError(f"no text given: regard {verb} {texts}")
        check_text_arguments("text", self.texts)
        for option, name, others in (("--target-text", "target", self.targets), ("--second", "second", self.second)):
            check_text_arguments(name, others)
            if others and len(others) != len(self.texts):
                counts = f"given {len(others)} for {len(self.texts)} text(s)"
                raise RegardError(f"{option}: {counts}, needs one for each text, in their order")
        if self.second and (self.targets or self.window is not None):
            raise RegardError("--second: leave out --target-text and --window")
        if self.stride is not None and self.window is None:
            raise RegardError("--stride needs --window: it sets how far each window starts after the previous one")
        if self.window is not None and self.targets:
            raise RegardError("--window: texts with a target cannot be read in windows")


def read_chat_file(file: Path) -> list[dict[str, str]]:
    """Read the messages in a JSON file."""
    from regard.files import parse_json, read_regular
    from regard.text.chat import check_messages

    content = read_regular(file, "--chat")
    try:
        return check_messages(parse_json(content))
    except RegardError as error:
        raise RegardError(f"--chat {str(file)!r}: {str(error).removeprefix('chat: ')}") from error


def check_text_arguments(name: str, texts: Sequence[str]) -> None:
    """Refuse texts that are blank or no valid Unicode. name: what one of them is called, "text" or "target"."""
    from regard.text.tokens import check_text

    for number, text in enumerate(texts, 1):
        check_text(text, f"{name} {number}" if len(texts) > 1 else name)


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

    def written_first(self) -> "list[Text]":
        """What is said before an answer where the model wrote the targets: the targets."""
        from rich.text import Text

        from regard.text.quoting import visible

        written = "; ".join(f"{n}: {target}" for n, (_, target) in enumerate(self.texts, 1))
        said = visible(f"The model wrote the target itself: {written}\n")
        return [Text(said, style="dim")] if any(self.generated) else []


def traced(given: Source, *, needs_model: bool = False) -> Traced:
    """Trace the texts, or open the file. needs_model: of a file, load its model too, which --model then has to name."""
    if given.file is not None:
        return _opened(given, needs_model)
    model = load_model(given.model)
    names, texts = _tokenizer_names_of_ids(model.tokenizer), list(given.texts)
    if given.chat is not None:
        trace = model.trace(messages=read_chat_file(given.chat))
        return Traced([trace], [(trace.text, None)], model, names)
    if given.second:
        both_read = model.trace(texts, second=list(given.second))
        return Traced(both_read, _texts_without_targets([each.text for each in both_read]), model, names)
    if given.window is not None:
        if model.pairs:
            raise RegardError(f"--window: {model.name} is an encoder-decoder, which cannot read a text in windows")
        windowed = [model.trace(text, window=given.window, stride=given.stride) for text in texts]
        return Traced(windowed, _texts_without_targets(texts), model, names)
    if given.targets:
        targets = list(given.targets)
        both: Both = list(zip(texts, targets, strict=True))
        return Traced(model.trace(texts, target=targets), both, model, names, [False] * len(texts))
    if model.pairs:
        written = [_target_written_by_model(model, text) for text in texts]
        both = [(text, each.text) for text, each in zip(texts, written, strict=True)]
        return Traced([each.trace for each in written], both, model, names, [True] * len(texts))
    return Traced(model.trace(texts), _texts_without_targets(texts), model, names)


def traced_again(given: Source) -> Traced:
    """The texts of a saved file, traced anew by the model: for what a file cannot tell."""
    from regard.text.tokens import given_texts
    from regard.trace.trace import PairTrace

    old = traced(Source(file=given.file))
    model = load_model(given.model)
    new = []
    for number, (saved, (text, _)) in enumerate(zip(old.traces, old.texts, strict=True), 1):
        which = f"--open {str(given.file)!r}: trace {number}"
        if not text:
            raise RegardError(f"{which} is of token ids without a text, which cannot be traced anew")
        if model.pairs != isinstance(saved, PairTrace):
            raise RegardError(f"{which} is not of {model.name}'s kind: --model M names the model that made it")
        trace: Trace | PairTrace
        if isinstance(saved, PairTrace):  # the very tokens: a target that was written may be tokenised differently
            trace = model.trace(text, target_ids=[token.id for token in saved.decoder.tokens])
        else:
            first, second = given_texts(text, saved.turns)
            trace = model.trace(first, second=second)
        sides = list(zip(saved.sides, trace.sides, strict=True))
        if not all(_same_trace_as_saved(*each) for each in sides):
            raise RegardError(f"{which} is not what {model.name} gives: --model M names the model that made it")
        for there, here in sides:
            here.text, here.tokens = there.text, there.tokens
        new.append(trace)
    return Traced(new, old.texts, model, _tokenizer_names_of_ids(model.tokenizer), [False] * len(new))


def one_trace(found: Traced, file: Path | None) -> "Trace":
    """The one trace of one text, for `regard steps`. file: where it was opened from."""
    from regard.trace.trace import PairTrace

    if len(found.traces) > 1:
        raise RegardError(f"steps: {str(file)!r} holds {len(found.traces)} traces, needs a file of one")
    (trace,) = found.traces
    if isinstance(trace, PairTrace):
        name = trace.decoder.status.model
        raise RegardError(f"steps: {name} is an encoder-decoder: use regard.explain.head_steps in Python")
    return trace


def _same_trace_as_saved(a: Any, b: Any) -> bool:
    """Whether two traces have the same tokens and, but for narrower numbers, the same contextual embeddings."""
    ids = [[token.id for token in trace.tokens] for trace in (a, b)]
    if ids[0] != ids[1] or a.last_hidden_state.shape != b.last_hidden_state.shape:
        return False
    there, here = a.last_hidden_state.float().cpu(), b.last_hidden_state.float().cpu()
    return bool(((there - here).norm(dim=-1) < 0.02 * here.norm(dim=-1)).all())


def _texts_without_targets(texts: Sequence[str]) -> Both:
    return [(text, None) for text in texts]


def _target_written_by_model(model: "Model", text: str) -> "Generated":
    """The target that an encoder-decoder writes, the likeliest token each time."""
    most = min(MOST_WRITTEN, (model.limit or MOST_WRITTEN + 1) - 1)
    written = model.generate(text, max_new_tokens=most, do_sample=False)
    status = written.trace.sides[-1].status  # the decoder's
    status.notes += ("The model wrote the target itself, taking the likeliest token each time.",)
    if written.ended == "length":
        status.notes += (f"The target stops at the limit of {most} tokens.",)
    return written


def _opened(given: Source, needs_model: bool) -> Traced:
    from regard.trace.file import open_traces

    assert given.file is not None
    traces = open_traces(given.file)
    texts = [(each.sides[0].text, each.sides[1].text if len(each.sides) > 1 else None) for each in traces]
    if needs_model and given.model is None:
        raise RegardError("--logit-lens with --open needs --model: a file does not hold the language head")
    if given.model is None:
        return Traced(traces, texts)
    if needs_model:
        model = load_model(given.model)
        return Traced(traces, texts, model, _tokenizer_names_of_ids(model.tokenizer))
    from regard.models.load import load_tokenizer

    return Traced(traces, texts, None, _tokenizer_names_of_ids(load_tokenizer(given.model)))


def _tokenizer_names_of_ids(tokenizer: Any) -> Callable[[int], str] | None:
    from regard.text.tokens import readable_token

    return None if tokenizer is None else lambda number: readable_token(tokenizer, number)
