"""Read the input of a command or program: texts, images or messages to trace, or a file of saved traces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import refuse_both
from regard.errors import RegardError
from regard.files import parse_json, read_regular
from regard.text.tokens import check_messages, check_text, given_texts, readable_token

if TYPE_CHECKING:
    from regard.generation.generator import Generated
    from regard.models.model import Model
    from regard.trace.trace import Trace

MAX_WRITTEN = 256  # maximum tokens of a generated target


@dataclass
class TracedTexts:
    """Traces, their (text, target) pairs (target None without a decoder), and the model, if loaded.

    names: a function that spells a token id, None if no tokenizer was opened. generated: for each pair, whether the
    model wrote the target.
    """

    traces: list[Any]
    texts: list[tuple[str, str | None]]
    model: Any = None
    names: Callable[[int], str] | None = None
    generated: list[bool] = field(default_factory=list)


@dataclass
class Source:
    """A command's input: texts (with targets or second texts if needed) or a file. load: opens a model by its name.

    written: the targets that the model wrote, set by `read`.
    """

    load: Callable[[str | None], "Model"]
    texts: Sequence[str] = ()
    targets: Sequence[str] = ()
    seconds: Sequence[str] = ()
    model: str | None = None
    window: int | None = None
    stride: int | None = None
    open_file: Path | None = None
    chat: Path | None = None
    images: Sequence[Path] = ()
    written: str = ""

    def need_texts(self, verb: str, texts: str) -> None:
        """Raise RegardError if a command got no texts. texts: their name in the usage of the command, verb."""
        if not self.texts:
            raise RegardError(f"no {'file' if texts == 'FILE' else 'text'} given: regard {verb} {texts}")

    def check(self, verb: str, texts: str = "TEXT...") -> None:
        """Raise RegardError for options that don't fit together, before loading a model. texts: see `need_texts`."""
        others = {"--target-text": self.targets, "--second": self.seconds, "--window": self.window}
        if self.images:
            refuse_both("--image", others | {"--stride": self.stride, "--open": self.open_file, "--chat": self.chat})
        elif self.open_file is not None:
            refuse_both("--open", {"TEXT": self.texts} | others | {"--chat": self.chat},
                        "the saved traces have their own texts, pass one of them")  # fmt: skip
        elif self.chat is not None:
            if self.texts or any(others.values()):
                raise RegardError("--chat replaces TEXT, --second, --target-text and --window: leave them out")
            read_chat_file(self.chat)
        elif not self.texts:
            self.need_texts(verb, texts)
        for option, name, values in (
            ("TEXT", "text", self.texts), ("--target-text", "target", self.targets),
            ("--second", "second", self.seconds),
        ):  # fmt: skip
            for number, text in enumerate(values, 1):
                check_text(text, f"{name} {number}" if len(values) > 1 else name)
            if values and len(values) != len(self.texts):
                counts = f"got {len(values)} for {len(self.texts)} text(s)"
                raise RegardError(f"{option}: {counts}, expected one per text, in the same order")
        if self.seconds and (self.targets or self.window is not None):
            raise RegardError("--second: leave out --target-text and --window")
        if self.stride is not None and self.window is None:
            raise RegardError("--stride needs --window: it sets how far each window starts after the previous one")
        if self.window is not None and self.targets:
            raise RegardError("--window: texts with a target cannot be read in windows")

    def read(self, *, needs_model: bool = False) -> TracedTexts:
        """Trace a command's texts, or open its file. needs_model: also load the file's model, from --model."""
        if self.open_file is not None:
            return self._open_saved(needs_model)
        model, texts = self.load(self.model), list(self.texts)
        traces: list[Any]
        names, generated, targets = spelling(model._tokenizer), [False] * len(texts), list(self.targets)
        if self.images:
            prompts = texts[0] if len(texts) == 1 else texts or None
            return TracedTexts(model.trace(prompts, images=list(self.images)), [], model, names)
        if self.chat is not None:
            traces = [model.trace(messages=read_chat_file(self.chat))]
        elif self.seconds:
            traces = model.trace(texts, second=list(self.seconds))
        elif self.window is not None:
            if model.pairs:
                raise RegardError(f"--window: {model.name} is an encoder-decoder, which cannot read a text in windows")
            traces = [model.trace(text, window=self.window, stride=self.stride) for text in texts]
            return TracedTexts(traces, [(text, None) for text in texts], model, names)
        elif targets:
            traces = model.trace(texts, target=targets)
            return TracedTexts(traces, list(zip(texts, targets, strict=True)), model, names, generated)
        elif model.pairs:
            written = [_target_written_by_model(model, text) for text in texts]
            pairs: list[tuple[str, str | None]]
            pairs = [(text, target.text) for text, target in zip(texts, written, strict=True)]
            self.written = "; ".join(f"{n}: {target}" for n, (_, target) in enumerate(pairs, 1))
            return TracedTexts([target.trace for target in written], pairs, model, names, [True] * len(texts))
        else:
            traces = model.trace(texts)
        return TracedTexts(traces, [(trace.text, None) for trace in traces], model, names)

    def read_again(self) -> TracedTexts:
        """Trace the texts of a saved file again, to compute values that the file lacks."""
        old, model, new = self._open_saved(needs_model=False, names=False), self.load(self.model), []
        for number, (saved, (text, _)) in enumerate(zip(old.traces, old.texts, strict=True), 1):
            label = f"--open {str(self.open_file)!r}: trace {number}"
            if not text:
                raise RegardError(f"{label} has token ids without a text, so it can't be traced again")
            if model.pairs != (len(saved.sides) == 2):
                raise RegardError(f"{label} doesn't fit {model.name}: pass its model, --model M")
            trace: Any
            if model.pairs:  # pass ids, because a generated target's text may have other tokens
                trace = model.trace(text, target_ids=[token.id for token in saved.decoder.tokens])
            else:
                first, second = given_texts(text, saved.turns)
                trace = model.trace(first, second=second)
            sides = list(zip(saved.sides, trace.sides, strict=True))
            if not all(_same_trace_as_saved(*side) for side in sides):
                raise RegardError(f"{label} differs from a trace of {model.name}: pass its model, --model M")
            for saved_side, new_side in sides:
                new_side.text, new_side.tokens = saved_side.text, saved_side.tokens
            new.append(trace)
        return TracedTexts(new, old.texts, model, spelling(model._tokenizer), [False] * len(new))

    def read_one(self, verb: str) -> "Trace":
        """Return the trace of a command's single text. Raise RegardError for several texts or an encoder-decoder."""
        traces: list[Trace] = self.read().traces
        if len(traces) > 1:
            holds = f"{str(self.open_file)!r} holds {len(traces)} traces"
            raise RegardError(f"{verb}: {holds}, but {verb} shows one: save only that trace")
        if len(traces[0].sides) == 2:
            name = traces[0].status.model
            raise RegardError(f"{verb}: {name} is an encoder-decoder, but {verb} shows one text: use regard see")
        return traces[0]

    def _open_saved(self, needs_model: bool, *, names: bool = True) -> TracedTexts:
        """Open the file of saved traces. names: whether to also open the tokenizer of --model, if passed."""
        from regard.models.load import load_tokenizer
        from regard.trace.file import open_traces

        assert self.open_file is not None
        traces = open_traces(self.open_file)
        texts = [(trace.sides[0].text, trace.sides[1].text if len(trace.sides) > 1 else None) for trace in traces]
        if needs_model and self.model is None:
            raise RegardError("--logit-lens with --open needs --model: a file doesn't have the language head")
        model = self.load(self.model) if needs_model else None
        if self.model is None or not names:
            return TracedTexts(traces, texts)
        tokenizer = load_tokenizer(self.model) if model is None else model._tokenizer
        return TracedTexts(traces, texts, model, spelling(tokenizer))


def read_chat_file(file: Path) -> list[dict[str, str]]:
    """Read the messages of a chat from a JSON file."""
    content = read_regular(file, "--chat")
    try:
        return check_messages(parse_json(content))
    except RegardError as error:
        raise RegardError(f"--chat {str(file)!r}: {str(error).removeprefix('chat: ')}") from error


def spelling(tokenizer: Any) -> Callable[[int], str] | None:
    """Return a function that spells a token id, None without a tokenizer."""
    return None if tokenizer is None else lambda number: readable_token(tokenizer, number)


def _same_trace_as_saved(a: Any, b: Any) -> bool:
    """Return whether a trace has the same tokens and, up to half-precision rounding, embeddings as a saved trace."""
    ids = [[token.id for token in trace.tokens] for trace in (a, b)]
    if ids[0] != ids[1] or a.last_hidden_state.shape != b.last_hidden_state.shape:
        return False
    saved_states, states = a.last_hidden_state.float().cpu(), b.last_hidden_state.float().cpu()
    return bool(((saved_states - states).norm(dim=-1) < 0.02 * states.norm(dim=-1)).all())


def _target_written_by_model(model: "Model", text: str) -> "Generated":
    """Generate the target of a text with an encoder-decoder, by greedy decoding."""
    limit = min(MAX_WRITTEN, (model.limit or MAX_WRITTEN + 1) - 1)
    written = model.generate(text, max_new_tokens=limit, do_sample=False)
    status = written.trace.sides[-1].status  # of the decoder
    status.notes += ("The model wrote the target itself, taking the likeliest token each time.",)
    if written.ended == "length":
        status.notes += (f"The target stops at the limit of {limit} tokens.",)
    return written
