"""A model to trace texts with: a transformers model, or a `regard.Transformer`."""

import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import torch

from regard.attention.map_statistics import Statistics
from regard.capture.embeddings import most_positions_of_model
from regard.capture.inputs import class_names
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
from regard.models.inputs import GenerateOptions, TraceInputs, TraceOptions, read_inputs
from regard.models.runner import Runner
from regard.models.windows import Plan, WindowedTrace
from regard.nn.bert import bert_names
from regard.nn.folder import save_model
from regard.nn.transformer import Transformer
from regard.text.reader import Ids, Reader
from regard.trace.trace import PairTrace, Trace

_OPEN_LOCK = threading.RLock()  # prevents two threads from opening a model twice

AnyTrace = Trace | PairTrace | WindowedTrace


class Model:
    """A model and its tokenizer, as `regard.load` returns it. Use `trace` to run texts.

    model, tokenizer: objects of transformers or regard (without a tokenizer, pass texts as ids). limit: the maximum
    number of tokens in a text, None for no limit. pairs: whether it is an encoder-decoder, which reads a text and a
    target. image_processor: the processor of a model that reads images, alone or in texts, None if unknown. labels: the
    class names of a classifier, see `Trace.labels`. () for other models.
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
        """Prepare a model for traces. original: opens the transformers model and tokenizer that this model replaces."""
        self._model, self._tokenizer, self._original = model, tokenizer, original
        self.name, self.notes, self.image_processor = name, notes, image_processor
        self.limit = most_positions_of_model(model)
        pairs = bool(getattr(model.config, "is_encoder_decoder", False))  # also true for an encoder-decoder's encoder
        self.pairs = pairs and "decoder_input_ids" in inspect.signature(model.forward).parameters
        self._reader = Reader(model, tokenizer, name, self.limit)
        session_class = RegardSession if isinstance(model, Transformer) else getattr(model, "session_class", Session)
        self.labels = class_names(model)
        # a classifier whose config names a padding id classifies at the last token that isn't padding
        filler = getattr(model.config.get_text_config() if self.labels else tokenizer, "pad_token_id", None) or 0
        self._session = session_class(model, name=name, filler=filler, pairs=self.pairs)
        self._runner = Runner(self._session, self._reader, notes)

    @property
    def model(self) -> Any:
        """The model object. Once you access it, the transformers model runs instead of regard's own implementation.

        Raises:
            RegardError: regard's implementation was running, and the model's files have since been changed or removed.
        """
        with _OPEN_LOCK:
            if self._original is not None:
                with torch.inference_mode(False), torch.device("cpu"):  # instead of the caller's mode and device
                    opened = self._original()
                weights, loaded = self._model.state_dict(), opened._model.state_dict()
                names = bert_names(self._model.config.layers).items()
                if not all(of in loaded and torch.equal(weights[name], loaded[of]) for name, of in names):
                    raise RegardError(f"{self.name}: its files changed since it was loaded: load it again")
                for name in ("_model", "_tokenizer", "_reader", "_session", "_runner", "_original"):
                    setattr(self, name, getattr(opened, name))
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The tokenizer object. Once you access it, the transformers model runs, as for `model`."""
        _ = self.model
        return self._tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the constructor's arguments, because the session has a lock and copies of the modules."""
        arguments = {name: getattr(self, name) for name in ("name", "notes", "image_processor")}
        return partial(Model, **arguments), (self.model, self.tokenizer)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self._model).__name__}, limit={self.limit})"

    # The arguments of `trace` determine its return type. Only encoder-decoders take a target. A string is also a
    # sequence of strings, so mypy warns of overlaps. For one text, the first overload matches.

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
        """Run one text, or several in batches, and keep the values of the forward pass.

        Args:
            text: one or several texts.
            target: the text of an encoder-decoder's decoder: one text, or one per text.
            ids, target_ids: token ids instead of texts, used unchanged, for models without a tokenizer.
            inputs: a single input of another kind instead of a text, such as {"pixel_values": tensor} or
                {"input_features": tensor}, as for the model's forward. Its tokens are named by number.
            images: an image or a list of images, each a file, a Pillow image or an array (height, width, 3). If the
                model only reads images, pass no text. If it reads texts with images, pass one image per text, or
                several for a single text. An image's tokens are named "row,column", and `trace.patches` has their
                positions in the image.
            messages: a chat instead of a text, [{"role": "user", "content": "…"}, …], formatted with the tokenizer's
                template. `trace.turns` has the tokens of each message. If the last message isn't the assistant's, the
                text ends where its answer begins.
            second: a second text to read together with each text, such as a hypothesis, a question's context or a
                choice. `trace.text` has it on a separate line, and `trace.turns` has its position.
            words: a list of words instead of a text, as token classifiers read them. For several texts, several lists.
            interventions: changes to the pass, such as `regard.ablate(regard.head(layer, head))`. They apply to every
                text, in the order of the list.
            layers: keep the attention, values and states of these layers, None for all. `()` keeps the states of all
                layers without attention.
            logits: whether to compute logits: (L, V) with a language head. For classifiers see `Trace.labels`.
            attention_outputs: whether to keep the path from each layer's attention to the residual stream, (L, M) per
                layer. Contributions and steps need it.
            statistics: True, or a `regard.Statistics`, to compute during the pass what
                `trace.attention[5].statistics()`, `.top(8)`, `.received()` and others return. For a long text, this
                saves later passes over the weights.
            window, stride: read each text in overlapping windows of `window` tokens, including special tokens. Each
                starts `stride` tokens after the previous window (None: half a window). Returns `WindowedTrace`s.

        Returns a `Trace` for one text, or a list of traces, in order, for several. With a target, returns a
        `PairTrace`, with a window a `WindowedTrace`.

        Raises:
            RegardError: the text is missing, blank, invalid Unicode or longer than the model's limit, a target is
                missing or not supported, layers, window or stride are invalid, or the memory isn't sufficient.
        """
        check_interventions(interventions)
        model = self._model if inputs is None else self.model  # only the transformers model takes other inputs
        keep = CaptureOptions.of(layers, logits, attention_outputs, statistics, model.config, self.name)
        others = target, ids, target_ids, inputs, window, stride, second, words
        if images is not None:
            if any(argument is not None for argument in (*others, messages)):
                raise RegardError("images can be combined with a text only, not with ids, inputs, a target or a window")
            single, pictures = from_above("read_images")(self, images, text)
            seen = [dict(self._runner.traces([picture], None, interventions, keep))[0] for picture in pictures]
            return seen[0] if single else seen  # type: ignore[return-value]
        if messages is not None:
            if self.pairs or any(argument is not None for argument in (text, *others)):
                raise RegardError("chat: pass only messages, without a window, to a model that reads a single text")
            single, sources, targets = True, [self._reader.read_chat(messages)], None
        else:
            single, sources, targets = read_inputs(
                self._reader, self._session, text, target, ids, target_ids, inputs, second, words,
                any_length=window is not None,
            )  # fmt: skip
        if self.pairs and keep.layers is not None:
            raise RegardError(f"layers: {self.name} is an encoder-decoder: all of its layers are kept")
        if window is None and stride is not None:
            raise RegardError(f"stride: got {stride}, but no window")
        if window is not None:
            windowed = self._runner.windowed(sources, window, stride, interventions, keep)
            return windowed[0] if single else windowed
        traces: dict[int, Any] = dict(self._runner.traces(sources, targets, interventions, keep))  # all of one type
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
            prompt: the text to continue, or the text that an encoder-decoder reads. Several prompts are processed
                independently, one after another.
            ids: the token ids of one or several prompts instead of texts.
            max_new_tokens: the maximum number of tokens to write, including special tokens.
            seed: the random seed for each text. None: no fixed seed.
            stop: strings at which to stop.
            interventions: changes to every pass, as in `trace`. Words are looked up in the prompt. Name generated
                tokens by their numbers. With interventions, the model writes without a KV cache, which takes longer.
            statistics: as in `trace`, for every attention map over all tokens.
            progress: called after each token with the text so far. If it raises an exception, the generation ends.
            options: those of transformers, such as do_sample, temperature, top_k, top_p, min_p and repetition_penalty
                (a `regard.Transformer` has the first four). Default: the model's generation settings. If these don't
                sample, decoding is greedy.

        Returns a `Generated` for one prompt, or a list for several: text, ids, and one trace of all tokens.

        Raises:
            RegardError: the model doesn't write text, so many tokens don't fit into its limit, or an option doesn't
                exist, has no effect or has a wrong value.
        """
        check_interventions(interventions)
        with self._session.alone():
            generated = self._generator.generate(
                prompt, ids, max_new_tokens, seed, stop, interventions, statistics, progress, options
            )
        if isinstance(generated, list):
            return [replace(result, model=self) for result in generated]
        return replace(generated, model=self)

    @cached_property
    def _generator(self) -> Generator[Any]:
        """The text generator for this kind of model."""
        if isinstance(self.model, Transformer):
            return RegardGenerator(self._session, self._reader, self._runner.trace)
        from regard.generation.generate import HuggingFaceGenerator

        return HuggingFaceGenerator(self._session, self._reader, self._runner.trace)

    @property
    def writes(self) -> bool:
        """Whether the model can `generate` text."""
        if self._original is not None:  # a bare BERT can't, so don't open transformers
            return False
        try:
            self._generator.check_model()
        except RegardError:
            return False
        return True

    @property
    def pictures(self) -> Literal["alone", "in a text"] | None:
        """Whether the model reads images "alone" or "in a text". None if it reads none, or its processor is unknown."""
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
        """Trace one text under many sets of ablations, much faster and with less memory than separate traces need.

        Runs are batched and reuse the layers below the first ablated layer.

        Args:
            text, target, ids, target_ids: as in `trace`, for a single text.
            sets: the ablations of each run, as `interventions` in `trace`.
            logits: whether to compute the logits, (L, V), if the model has a language head.

        Yields the number of each set and its trace, in the order of completion. The traces have contextual embeddings
        and logits, but no layers.

        Raises:
            RegardError: as in `trace`, or the number of texts isn't one.
        """
        single, (source, *_), targets = read_inputs(self._reader, self._session, text, target, ids, target_ids)
        if not single:
            raise RegardError("ablated: got several texts, expected one")
        sets = [tuple(interventions) for interventions in sets]
        for interventions in sets:
            check_interventions(interventions)
        yield from self._runner.ablated(source, None if targets is None else targets[0], sets, logits=logits)

    def without(self, trace: Trace, regions: Sequence[tuple[slice, slice]], fill: Fill = "blank") -> Iterator[Trace]:
        """Yield traces of an image, alone or in a text, each with one region removed. Layers aren't kept.

        regions: (rows, columns) of patches. fill: the region's replacement, as in `regard.images`.
        """
        return from_above("traces_without")(self, trace, regions, fill)

    def save(self, folder: str | Path) -> None:
        """Write the folder that `regard.load` opens: config.json, model.safetensors, and the tokenizer's files.

        Only for a `regard.Transformer`. For a transformers model, call `model.model.save_pretrained`.

        Raises:
            RegardError: it is a transformers model, or the folder can't be made or written to.
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
        """Trace a text window by window. Return the plan (`plan.sources` has each token's window) and the traces.

        window, stride, layers: as in `trace`. You needn't keep all traces in memory. They have no logits.
        """
        _, (encoded,) = self._reader.read("text", [text], None, windowed=True)
        keep = CaptureOptions.of(layers, False, True, False, self._model.config, self.name)
        return self._runner.stream(encoded, window, stride, keep)
