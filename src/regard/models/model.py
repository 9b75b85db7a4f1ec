"""A model that texts are traced through: one of transformers, or a `regard.Transformer`."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.capture.embeddings import position_limit
from regard.capture.inputs import ModelInput, check_inputs
from regard.capture.interventions import Edge, Intervention, target_of
from regard.capture.options import CaptureOptions
from regard.capture.regard_attention import RegardSession
from regard.capture.session import Session
from regard.errors import RegardError
from regard.generation.decode import RegardGenerator
from regard.generation.generate import HuggingFaceGenerator
from regard.generation.generator import Generator
from regard.models.runner import Runner
from regard.models.windows import Plan, joined, plan
from regard.nn.folder import save_model
from regard.nn.transformer import Transformer
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded, encoded_ids
from regard.text.words import Word
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    import regard.explain.why


class Model:
    """A model and its tokenizer; `regard.load` makes it, `trace` is what it is for.

    model and tokenizer are the objects themselves, of transformers or ours (tokenizer None: texts are given as ids).
    limit: the most tokens of a text, None for no limit. pairs: whether it is an encoder-decoder, which reads a text and
    a target.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, notes: tuple[str, ...] = ()) -> None:
        self.model, self.tokenizer, self.name, self.notes = model, tokenizer, name, notes
        self.limit = position_limit(model)
        told = bool(getattr(model.config, "is_encoder_decoder", False))  # an encoder taken out of a pair says so too
        self.pairs = told and "decoder_input_ids" in inspect.signature(model.forward).parameters
        self._reader = Reader(model, tokenizer, name, self.limit)
        session_class = RegardSession if isinstance(model, Transformer) else Session
        filler = getattr(tokenizer, "pad_token_id", None) or 0
        self._session = session_class(model, name=name, filler=filler, pairs=self.pairs)
        self._runner = Runner(self._session, notes)
        self._generator: Generator
        if isinstance(model, Transformer):
            self._generator = RegardGenerator(self._session, self._reader, notes, self._runner.trace)
        else:
            self._generator = HuggingFaceGenerator(self._session, self._reader, notes)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self.model).__name__}, limit={self.limit})"

    def trace(
        self,
        text: str | Sequence[str] | None = None,
        *,
        target: str | Sequence[str] | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        inputs: Mapping[str, Any] | None = None,
        interventions: Sequence[Intervention] = (),
        layers: int | Collection[int] | None = None,
        logits: bool = True,
        attention_outputs: bool = True,
        window: int | None = None,
        stride: int | None = None,
    ) -> Any:
        """Run one text, or several in batches, and keep everything the forward pass did.

        Args:
            text: one text or several.
            target: of an encoder-decoder, what its decoder reads: one text, or one for each text.
            ids, target_ids: token ids instead of texts, taken as they are; for models without a tokenizer.
            inputs: instead of a text, one item of what else the model reads, such as {"pixel_values": tensor} or
                {"input_features": tensor}, as its forward takes it; its tokens have numbers for names.
            interventions: what is done to the pass, such as `regard.ablate(regard.head(layer, head))`; in every text,
                in the order of the list.
            layers: the layers whose attention, values and states are kept, None for all.
            logits: whether the logits, (L, V), are computed where the model has a language head.
            blocks: whether what stands around attention is kept, (L, M) a layer; contributions and steps need it.
            window, stride: read each text in overlapping windows of so many tokens, special ones included, each so
                many further than the one before (None: half of what a window holds); gives `WindowedTrace`s.

        Returns a `Trace` for one text, a list of them, in order, for several. An encoder-decoder gives a `PairTrace`.

        Raises:
            RegardError: no text, a blank one, invalid Unicode, more tokens than the model has positions for, a target
                that is missing or not wanted, layers, windows or strides that do not fit, or more than fits in memory.
        """
        sources: list[Encoded]
        if inputs is not None and text is None and ids is None:
            single, sources = True, [check_inputs(inputs, self.model, self._session.takes, self.name)]
        elif inputs is not None:
            raise RegardError("trace: needs a text, ids or inputs, given two of them")
        else:
            single, sources = self._reader.read("text", text, ids, windowed=window is not None)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None:
            if not self.pairs:
                raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
            one, targets = self._reader.read("target", target, target_ids)
            if one != single or len(targets) != len(sources):
                raise RegardError(f"target: given {len(targets)}, needs one for each of the {len(sources)} texts")
        elif self.pairs:
            raise RegardError(f"target: {self.name} is an encoder-decoder, it needs a target beside the text")
        keep = CaptureOptions.of(layers, logits, attention_outputs, self.model.config, self.name)
        if self.pairs and layers is not None:
            raise RegardError(f"layers: {self.name} is an encoder-decoder, all layers of it are kept")
        if window is None and stride is not None:
            raise RegardError(f"stride: given {stride} without a window")
        if window is None:
            traces = dict(self._runner.traces(sources, targets, interventions, keep))
            return traces[0] if single else [traces[n] for n in range(len(sources))]
        plans = [self._plan(each, window, stride, interventions) for each in sources]
        pieces = [piece for each in plans for piece in each.pieces()]
        read = dict(self._runner.traces(pieces, None, interventions, keep))
        found, start = [], 0
        for each in plans:
            found.append(joined(each, [read[n] for n in range(start, start + len(each.spans))]))
            start += len(each.spans)
        return found[0] if single else found

    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        *,
        ids: Ids | None = None,
        new_tokens: int = 20,
        seed: int | None = None,
        cache: str = "dynamic",
        stop: str | Sequence[str] = (),
        interventions: Sequence[Intervention] = (),
        **options: Any,
    ) -> Any:
        """Generate text, and trace all of its tokens.

        Args:
            prompt: what the text begins with; for an encoder-decoder the text that it reads. Several are written to one
                after another, each as if it were alone.
            ids: the token ids of a prompt (or of several) instead of it.
            new_tokens: the most tokens to write, special ones included.
            seed: of the random numbers of each text; None takes them as they come.
            cache: the kind of KV cache, "dynamic" or "static" (models of transformers only); the text is the same.
            stop: strings at which to stop.
            interventions: what is done to every pass, as in `trace`. Words are looked up in the prompt; tokens that
                are written later have numbers alone.
            options: as in transformers: do_sample, temperature, top_k, top_p, min_p, repetition_penalty, … (a
                `regard.Transformer` has the first four). What is not given is as the model's own generation settings
                have it, greedy where they do not sample.

        Returns a `Generated` for one prompt, a list of them for several: text, ids, and one trace of all the tokens.

        Raises:
            RegardError: the model does not write text, there is no room for so many tokens, or an option does not
                exist, has no effect or cannot have its value.
        """
        return self._generator.generate(
            prompt,
            ids=ids,
            new_tokens=new_tokens,
            seed=seed,
            cache=cache,
            stop=stop,
            interventions=interventions,
            options=options,
        )

    def ablated(
        self,
        text: str | None = None,
        sets: Sequence[Sequence[Any]] = (),
        *,
        target: str | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        logits: bool = True,
    ) -> Iterator[tuple[int, Any]]:
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
        single, sources = self._reader.read("text", text, ids)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None or self.pairs:
            one, targets = self._reader.read("target", target, target_ids)
            single &= one
        if not single:
            raise RegardError("ablated: given several texts, needs one")
        if targets is not None and not self.pairs:
            raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
        sets = [tuple(each) for each in sets]
        yield from self._runner.ablated(sources[0], None if targets is None else targets[0], sets, logits=logits)

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

    def why(
        self,
        trace: Trace | PairTrace,
        word: str | Word,
        *,
        side: Literal["source", "target"] | None = None,
    ) -> "regard.explain.why.Why":
        """Rank the tokens and heads behind a word, each measured by ablating it.

        Args:
            trace: of this model, without interventions.
            word: a word that occurs once, or one occurrence (`trace.word(...)[n]`).
            side: of an encoder-decoder, the text that the word is of; None where a word occurs on one side alone.

        Returns a `regard.explain.why.Why`.

        Raises:
            RegardError: the word occurs nowhere or several times, an attention output whose path was not verified, or a
                side that is missing or not wanted.
        """
        from regard.explain.why import only_occurrence, why  # a layer above: see import-linter's exception

        if isinstance(word, str):
            side, word = only_occurrence(trace, word, side)
        source = self._source_of(trace.encoder if isinstance(trace, PairTrace) else trace)
        target = encoded_ids([token.id for token in trace.decoder.tokens]) if isinstance(trace, PairTrace) else None
        runs = partial(self._runner.ablated, source, target, logits=True)
        return why(trace, word, runs, side=side)

    def _source_of(self, trace: Trace) -> Encoded:
        """What the model read to give a trace: its text where that has the same tokens, else their ids."""
        ids = [token.id for token in trace.tokens]
        if self.tokenizer is not None:
            try:
                _, (encoded,) = self._reader.read("text", [trace.text], None)
            except RegardError:  # such as the text of a trace of ids
                return encoded_ids(ids)
            if encoded.ids == ids:
                return encoded  # with its segments
        return encoded_ids(ids)

    def stream(
        self, text: str, *, window: int, stride: int | None = None, layers: int | Collection[int] | None = None
    ) -> tuple[Plan, Iterator[Trace]]:
        """A text's windows one after another, for who does not want to hold them all; without logits.

        Returns the plan (`plan.sources` has the window of every token) and the traces of the windows in order.
        """
        _, (encoded,) = self._reader.read("text", [text], None, windowed=True)
        plan = self._plan(encoded, window, stride, ())
        keep = CaptureOptions.of(layers, False, True, self.model.config, self.name)
        pieces = plan.pieces()  # of one length, so that they come in order
        return plan, (trace for _, trace in self._runner.traces(pieces, None, (), keep, streamed=True))

    def _plan(self, encoded: Encoded, window: int, stride: int | None, interventions: Sequence[Intervention]) -> Plan:
        if self.pairs:
            raise RegardError(f"window: {self.name} is an encoder-decoder, which cannot read a text in windows")
        if isinstance(encoded, ModelInput):
            raise RegardError("window: inputs cannot be read in windows, a text can")
        if any(isinstance(target_of(each), Edge) for each in interventions):
            raise RegardError("window: edges cannot be ablated in windows, heads can")
        return plan(encoded, self.tokenizer, window, stride, self.limit, self.name)
