"""A model that texts are traced through: one of transformers, or a `regard.Transformer`."""

import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import torch

from regard.attention.map_statistics import Statistics
from regard.capture.classes import class_names
from regard.capture.embeddings import most_positions_of_model
from regard.capture.interventions.resolve import Intervention, check_interventions
from regard.capture.options import CaptureOptions
from regard.capture.regard_attention import RegardSession
from regard.capture.session import Session
from regard.checks import arguments_named
from regard.errors import RegardError
from regard.generation.decode import RegardGenerator
from regard.generation.generator import Generated, Generator
from regard.images import Fill
from regard.lazy import from_above
from regard.models.inputs import (
    GenerateOptions,
    TraceInputs,
    TraceOptions,
    read_inputs,
)
from regard.models.runner import Runner
from regard.models.windows import Plan, WindowedTrace
from regard.nn.folder import save_model
from regard.nn.from_transformers import bert_names
from regard.nn.transformer import Transformer
from regard.text.reader import Ids, Reader
from regard.trace.trace import PairTrace, Trace

_OPENING = threading.RLock()  # so that two threads open a model once

AnyTrace = Trace | PairTrace | WindowedTrace


class Model:
    """A model and its tokenizer; `regard.load` makes it, `trace` is what it is for.

    model and tokenizer are the objects themselves, of transformers or ours (tokenizer None: texts are given as ids).
    limit: the most tokens of a text, None for no limit. pairs: whether it is an encoder-decoder, which reads a text and
    a target. image_processor: of a model that reads pictures, what makes them (and the texts beside them) ready, None
    where that is not known.
    labels: of a classifier, the names of its classes, see `Trace.labels`; () of other models.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        notes: tuple[str, ...] = (),
        image_processor: Any = None,
        original: "Callable[[], Model] | None" = None,
    ) -> None:
        """Take a model. original: opens the model of transformers that ours stands in for, with its tokenizer."""
        self._model, self._tokenizer, self._original = model, tokenizer, original
        self.name, self.notes, self.image_processor = name, notes, image_processor
        self.limit = most_positions_of_model(model)
        pairs = bool(getattr(model.config, "is_encoder_decoder", False))  # so says an encoder taken out of a pair
        self.pairs = pairs and "decoder_input_ids" in inspect.signature(model.forward).parameters
        self._reader = Reader(model, tokenizer, name, self.limit)
        session_class = RegardSession if isinstance(model, Transformer) else getattr(model, "session_class", Session)
        self.labels = class_names(model)
        # where its config says so, a classifier's last token is the last that is no padding
        filler = getattr(model.config.get_text_config() if self.labels else tokenizer, "pad_token_id", None) or 0
        self._session = session_class(model, name=name, filler=filler, pairs=self.pairs)
        self._runner = Runner(self._session, self._reader, notes)

    @property
    def model(self) -> Any:
        """The model object itself, which runs from here on, if ours ran in its place.

        Raises:
            RegardError: ours ran, and the files of its folder have changed since, or are gone.
        """
        with _OPENING:
            if self._original is not None:
                with torch.inference_mode(False), torch.device("cpu"):  # wherever it is asked for
                    opened = self._original()
                ours, theirs = self._model.state_dict(), opened._model.state_dict()
                names = bert_names(self._model.config.layers).items()
                if not all(of in theirs and torch.equal(ours[name], theirs[of]) for name, of in names):
                    raise RegardError(f"{self.name}: its files changed since it was loaded: load it again")
                for name in ("_model", "_tokenizer", "_reader", "_session", "_runner", "_original"):
                    setattr(self, name, getattr(opened, name))
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer itself; see `model`."""
        _ = self.model
        return self._tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the model is made of: its session has a lock and copies of the modules."""
        made = {name: getattr(self, name) for name in ("name", "notes", "image_processor")}
        return partial(Model, **made), (self.model, self.tokenizer)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self._model).__name__}, limit={self.limit})"

    # What `trace` returns follows from its arguments: encoder-decoders, and they alone, are given a target. A string
    # is itself a sequence of strings, of which mypy warns: the overload for one text comes first and takes it.

    @overload
    def trace(  # type: ignore[overload-overlap]
        self, text: str, *, target: None = None, window: None = None, **options: Unpack[TraceOptions]
    ) -> Trace: ...
    @overload
    def trace(self, text: str, *, target: str, **options: Unpack[TraceOptions]) -> PairTrace: ...  # type: ignore[overload-overlap]
    @overload
    def trace(  # type: ignore[overload-overlap]
        self, text: str, *, window: int, stride: int | None = None, **options: Unpack[TraceOptions]
    ) -> WindowedTrace: ...
    @overload
    def trace(
        self, text: Sequence[str], *, target: None = None, window: None = None, **options: Unpack[TraceOptions]
    ) -> list[Trace]: ...
    @overload
    def trace(
        self, text: Sequence[str], *, target: Sequence[str], **options: Unpack[TraceOptions]
    ) -> list[PairTrace]: ...
    @overload
    def trace(
        self, text: Sequence[str], *, window: int, stride: int | None = None, **options: Unpack[TraceOptions]
    ) -> list[WindowedTrace]: ...
    @overload
    def trace(
        self, *, ids: Sequence[int], target_ids: None = None, window: None = None, **options: Unpack[TraceOptions]
    ) -> Trace: ...
    @overload
    def trace(
        self, text: str | None = None, *, ids: Sequence[int] | None = None, target_ids: Sequence[int],
        **options: Unpack[TraceOptions],
    ) -> PairTrace: ...  # fmt: skip
    @overload
    def trace(
        self, text: str | Sequence[str] | None = None, *, images: Sequence[Any], **options: Unpack[TraceOptions]
    ) -> list[Trace]: ...
    @overload
    def trace(self, text: str | None = None, *, images: Any, **options: Unpack[TraceOptions]) -> Trace: ...
    @overload
    def trace(self, *, messages: Sequence[Mapping[str, str]], **options: Unpack[TraceOptions]) -> Trace: ...
    @overload
    def trace(self, *, words: Sequence[str], **options: Unpack[TraceOptions]) -> Trace: ...  # type: ignore[overload-overlap]
    @overload
    def trace(self, *, words: Sequence[Sequence[str]], **options: Unpack[TraceOptions]) -> list[Trace]: ...
    @overload
    def trace(
        self, text: str | Sequence[str] | None = None, **options: Unpack[TraceInputs]
    ) -> AnyTrace | list[Trace] | list[PairTrace] | list[WindowedTrace]: ...

    @arguments_named
    def trace(
        self,
        text: str | Sequence[str] | None = None,
        *,
        target: str | Sequence[str] | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        inputs: Mapping[str, Any] | None = None,
        images: Any = None,
        messages: Sequence[Mapping[str, str]] | None = None,
        second: str | Sequence[str] | None = None,
        words: Sequence[str] | Sequence[Sequence[str]] | None = None,
        interventions: Sequence[Intervention] = (),
        layers: int | Collection[int] | None = None,
        logits: bool = True,
        attention_outputs: bool = True,
        statistics: bool | Statistics = False,
        window: int | None = None,
        stride: int | None = None,
    ) -> AnyTrace | list[Trace] | list[PairTrace] | list[WindowedTrace]:
        """Run one text, or several in batches, and keep everything the forward pass did.

        Args:
            text: one text or several.
            target: of an encoder-decoder, what its decoder reads: one text, or one for each text.
            ids, target_ids: token ids instead of texts, taken as they are; for models without a tokenizer.
            inputs: instead of a text, one item of what else the model reads, such as {"pixel_values": tensor} or
                {"input_features": tensor}, as its forward takes it; its tokens have numbers for names.
            images: a picture or a list of them, each a file, a Pillow image or an array (height, width, 3): instead of
                a text, of a model that reads pictures alone; of one that reads texts with pictures one for each text,
                or several that one text asks about. A picture's tokens are named "row,column", and `trace.patches` says
                where on the picture each of them lies.
            messages: instead of a text, a chat, [{"role": "user", "content": "…"}, …], written as the tokenizer's
                template writes it; `trace.turns` says which tokens each message is. Where the last is not the
                assistant's, the text ends where its answer begins.
            second: a text that is read together with each text, such as a hypothesis, a question's context or a choice.
                `trace.text` has it on a line of its own, and `trace.turns` says where.
            words: instead of a text, its words in a list, as token classifiers read them; several texts, several lists.
            interventions: what is done to the pass, such as `regard.ablate(regard.head(layer, head))`; in every text,
                in the order of the list.
            layers: the layers whose attention, values and states are kept, None for all; `()` for the states of all
                layers without attention.
            logits: whether the logits are computed: (L, V) with a language head; of a classifier see `Trace.labels`.
            attention_outputs: whether the path from each layer's attention to the residual stream is kept, (L, M) a
                layer; contributions and steps need it.
            statistics: True, or a `regard.Statistics`: computed with the pass for every attention map to answer from
                (`trace.attention[5].statistics()`, `.top(8)`, `.received()`, …); of a long text in one sweep with the
                output.
            window, stride: read each text in overlapping windows of so many tokens, special ones included, each so
                many further than the one before (None: half of what a window holds); gives `WindowedTrace`s.

        Returns a `Trace` for one text, a list of them, in order, for several; with a target a `PairTrace`, with a
        window a `WindowedTrace`.

        Raises:
            RegardError: no text, a blank one, invalid Unicode, more tokens than the model has positions for, a target
                that is missing or not wanted, layers, windows or strides that do not fit, or more than fits in memory.
        """
        check_interventions(interventions)
        model = self._model if inputs is None else self.model  # of transformers, which takes more kinds of inputs
        keep = CaptureOptions.of(layers, logits, attention_outputs, statistics, model.config, self.name)
        others = target, ids, target_ids, inputs, window, stride, second, words
        if images is not None:
            if any(each is not None for each in (*others, messages)):
                raise RegardError("images: given beside ids, inputs, a target or a window, needs a text or nothing")
            single, pictures = from_above("read_images")(self, images, text)
            seen = [dict(self._runner.traces([each], None, interventions, keep))[0] for each in pictures]
            return seen[0] if single else seen  # type: ignore[return-value]
        if messages is not None:
            if self.pairs or any(each is not None for each in (text, *others)):
                raise RegardError("chat: messages are given alone, and whole, to a model that reads a single text")
            single, sources, targets = True, [self._reader.read_chat(messages)], None
        else:
            single, sources, targets = read_inputs(
                self._reader, self._session, text, target, ids, target_ids, inputs, second, words,
                any_length=window is not None,
            )  # fmt: skip
        if self.pairs and keep.layers is not None:
            raise RegardError(f"layers: {self.name} is an encoder-decoder, all layers of it are kept")
        if window is None and stride is not None:
            raise RegardError(f"stride: given {stride} without a window")
        if window is not None:
            windowed = self._runner.windowed(sources, window, stride, interventions, keep)
            return windowed[0] if single else windowed
        traces: dict[int, Any] = dict(self._runner.traces(sources, targets, interventions, keep))  # all of one kind
        return traces[0] if single else [traces[n] for n in range(len(sources))]

    __call__ = trace

    @overload
    def generate(self, prompt: str, **options: Unpack[GenerateOptions]) -> Generated: ...  # type: ignore[overload-overlap]
    @overload
    def generate(self, prompt: Sequence[str], **options: Unpack[GenerateOptions]) -> list[Generated]: ...
    @overload
    def generate(self, *, ids: Sequence[int], **options: Unpack[GenerateOptions]) -> Generated: ...
    @overload
    def generate(self, *, ids: Ids, **options: Unpack[GenerateOptions]) -> Generated | list[Generated]: ...

    @arguments_named
    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        *,
        ids: Ids | None = None,
        max_new_tokens: int = 20,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        interventions: Sequence[Intervention] = (),
        statistics: bool | Statistics = False,
        progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Generated | list[Generated]:
        """Generate text, and trace all of its tokens.

        Args:
            prompt: what the text begins with; for an encoder-decoder the text that it reads. Several are written to one
                after another, each as if it were alone.
            ids: the token ids of a prompt (or of several) instead of it.
            max_new_tokens: the most tokens to write, special ones included.
            seed: of the random numbers of each text; None takes them as they come.
            stop: strings at which to stop.
            interventions: what is done to every pass, as in `trace`. Words are looked up in the prompt; tokens that
                are written later have numbers alone. The model then writes without a KV cache, which takes longer.
            statistics: as in `trace`, of every attention map over all tokens.
            progress: called with the text written so far, after each token; what it raises ends the generation.
            options: as in transformers: do_sample, temperature, top_k, top_p, min_p, repetition_penalty, … (a
                `regard.Transformer` has the first four). What is not given is as the model's own generation settings
                have it, greedy where they do not sample.

        Returns a `Generated` for one prompt, a list of them for several: text, ids, and one trace of all the tokens.

        Raises:
            RegardError: the model does not write text, there is no room for so many tokens, or an option does not
                exist, has no effect or cannot have its value.
        """
        check_interventions(interventions)
        with self._session.alone():
            generated = self._generator.generate(
                prompt, ids, max_new_tokens, seed, stop, interventions, statistics, progress, options
            )
        if isinstance(generated, list):
            return [replace(one, model=self) for one in generated]
        return replace(generated, model=self)

    @cached_property
    def _generator(self) -> Generator[Any]:
        """What writes with the model, in the way of its kind."""
        if isinstance(self.model, Transformer):
            return RegardGenerator(self._session, self._reader, self._runner.trace)
        from regard.generation.generate import HuggingFaceGenerator

        return HuggingFaceGenerator(self._session, self._reader, self._runner.trace)

    @property
    def writes(self) -> bool:
        """Whether the model can write text: `generate`."""
        if self._original is not None:  # a bare BERT, whose transformers aren't opened for this
            return False
        try:
            self._generator.check_model()
        except RegardError:
            return False
        return True

    @property
    def pictures(self) -> Literal["alone", "in a text"] | None:
        """How the model reads pictures: alone, or in a text; None for not, or where its processor is not known."""
        if "pixel_values" not in self._session.takes or self.pairs or self.image_processor is None:
            return None
        if self._session.original.main_input_name == "pixel_values":
            return "alone"
        return "in a text" if hasattr(self.image_processor, "image_token") and self.tokenizer is not None else None

    def ablated(
        self,
        text: str | None = None,
        sets: Sequence[Sequence[Any]] = (),
        *,
        target: str | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        logits: bool = True,
    ) -> Iterator[tuple[int, Trace | PairTrace]]:
        """Run one text under many sets of ablations: far sooner than as many traces, and holding less.

        Runs go in batches and do not compute again what lies below the first ablated layer.

        Args:
            text, target, ids, target_ids: of one text, as in `trace`.
            sets: for each run what is ablated, as `interventions` in `trace`.
            logits: whether the logits, (L, V), are computed where the model has a language head.

        Yields the number of each set and its trace, in the order in which they are done. The traces have contextual
        embeddings and logits; their layers are not kept.

        Raises:
            RegardError: as `trace`; no or several texts.
        """
        single, (source, *_), targets = read_inputs(self._reader, self._session, text, target, ids, target_ids)
        if not single:
            raise RegardError("ablated: given several texts, needs one")
        sets = [tuple(each) for each in sets]
        for interventions in sets:
            check_interventions(interventions)
        yield from self._runner.ablated(source, None if targets is None else targets[0], sets, logits=logits)

    def without(self, trace: Trace, regions: Sequence[tuple[slice, slice]], fill: Fill = "blank") -> Iterator[Trace]:
        """Yield the trace of a picture, alone or in a text, without each region of it; layers are not kept.

        regions: (rows, columns) of patches. fill: what stands there, as `regard.images` has it.
        """
        return from_above("traces_without")(self, trace, regions, fill)

    def save(self, folder: str | Path) -> None:
        """Write the folder that `regard.load` opens: config.json, model.safetensors, and the tokenizer's files.

        For a `regard.Transformer`; a model of transformers has `model.model.save_pretrained`.

        Raises:
            RegardError: the model is one of transformers, or the folder cannot be made or written to.
        """
        if not isinstance(self.model, Transformer):
            raise RegardError(
                f"save: {self.name} is a {type(self.model).__name__}, save writes a regard.Transformer: models of "
                "transformers have model.model.save_pretrained(folder)"
            )
        save_model(folder, self.model, self.tokenizer)

    def stream(
        self, text: str, *, window: int, stride: int | None = None, layers: int | Collection[int] | None = None
    ) -> tuple[Plan, Iterator[Trace]]:
        """Return the plan (`plan.sources` has the window of every token) and the traces of a text's windows, in order.

        window, stride, layers: as `trace` takes them. The windows need not be held all at once, and have no logits.
        """
        _, (encoded,) = self._reader.read("text", [text], None, windowed=True)
        keep = CaptureOptions.of(layers, False, True, False, self._model.config, self.name)
        return self._runner.stream(encoded, window, stride, keep)
