"""Find the words of a pipeline's prompt, and store the attention of every image position to every word.

A pipeline's text encoders read a text that is padded to a fixed length, and the image attends to their output. With
guidance, the batch also contains texts without the words. Comparing the model's input with the text encoders' output
shows which batch rows have the words.

The weights are the pipeline's own, from cross-attention or from the joint attention of image and words. Layers have
grids of different sizes. A mean over layers assigns a coarse position's weight to all fine positions that it covers.
(Tang et al. 2023, "What the DAAM: Interpreting Stable Diffusion Using Cross Attention", also sum heat maps, but smooth
them.)
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.checks import from_zero
from regard.errors import RegardError
from regard.text.tokens import Token, encode, shortened
from regard.text.words import find_word, spelling, words


@dataclass(frozen=True)
class Reads:
    """How a model reads the words of a prompt. encoders: the text encoders whose tokens are its keys, in order.

    first: what comes first if image and words form a single sequence. None: the image has cross-attention to words.
    """

    encoders: tuple[int, ...]
    first: Literal["picture", "words"] | None = None


READS = {
    "UNet2DConditionModel": Reads((1,)),
    "PixArtTransformer2DModel": Reads((1,)),
    "SD3Transformer2DModel": Reads((1, 3), "picture"),
    "FluxTransformer2DModel": Reads((2,), "words"),
}


@dataclass(frozen=True)
class Prompt:
    """The text of a prompt with the tokens that the image can attend to.

    tokens: the tokens of each text encoder used, without padding. keys: each token's key index. length: the number of
    keys. notes: about text that was cut off.
    """

    text: str
    tokens: tuple[Token, ...]
    keys: tuple[int, ...]
    length: int
    notes: tuple[str, ...] = ()

    @property
    def padding(self) -> list[int]:
        """Return the indices of the padding keys."""
        keys = set(self.keys)
        return [key for key in range(self.length) if key not in keys]

    @property
    def words(self) -> "list[PromptWord]":
        """Return the words of the text, then the special tokens. A word's tokens are those of all encoders."""
        numbers_by_span: dict[tuple[int, int], list[int]] = {}
        starts = [0, *(n for n in range(1, len(self.tokens)) if self.keys[n] != self.keys[n - 1] + 1)]  # per encoder
        runs = zip(starts, [*starts[1:], len(self.tokens)], strict=True)
        for word in ([start + n for n in word] for start, stop in runs for word in words(self.tokens[start:stop])):
            first, last = self.tokens[word[0]], self.tokens[word[-1]]
            if not first.special:
                numbers_by_span.setdefault((first.start, last.end), []).extend(word)
        names = [spelling(self.tokens, token_numbers) for _, token_numbers in sorted(numbers_by_span.items())]
        prompt_words = [
            PromptWord(f"{name} ({names[:n].count(name) + 1})" if names.count(name) > 1 else name, tuple(token_numbers))
            for n, (name, (_, token_numbers)) in enumerate(zip(names, sorted(numbers_by_span.items()), strict=True))
        ]
        special = dict.fromkeys(token.text for token in self.tokens if token.special)
        return prompt_words + [
            PromptWord(name, tuple(n for n, token in enumerate(self.tokens) if token.text == name), special=True)
            for name in special
        ]


@dataclass(frozen=True)
class PromptWord:
    """A word of a prompt: its name and the indices of its tokens."""

    name: str
    tokens: tuple[int, ...]
    special: bool = field(default=False)


@dataclass
class EncodedText:
    """A text, its token ids (T) for each of a pipeline's text encoders, and its encoded states (n, T, C)."""

    text: str
    ids: dict[int, list[int]] = field(default_factory=dict)
    states: Float[Tensor, "n T C"] | None = None

    def rows(self, states: Float[Tensor, "B T C"]) -> list[int]:
        """Return the batch rows of a model's input that contain the words."""
        if self.states is None or self.states.shape[1:] != states.shape[1:]:
            return []
        text_states = self.states.to(states)
        return [n for n, row in enumerate(states) if any(torch.equal(row, state) for state in text_states)]


@contextmanager
def encoded_text(pipeline: Any, before: Callable[[], None]) -> Iterator[list[EncodedText]]:
    """Yield a list of the texts that a pipeline's text encoders read inside the block, with ids and states.

    The first text is the prompt, the others are negative prompts. before: called before each text is encoded.
    """
    original = pipeline.encode_prompt
    signature = inspect.signature(original)
    encoded: list[EncodedText] = []

    def encode_prompt(*args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
        before()
        arguments = signature.bind(*args, **kwargs).arguments
        text = EncodedText(_text_of_call(arguments))
        if (encoded and encoded[0].text == text.text) or arguments.get("negative_prompt") in (text.text, [text.text]):
            raise RegardError("negative_prompt: it equals the text, so their runs can't be told apart: pass another")
        encoded.append(text)
        with ExitStack() as stack:
            for number in (1, 2, 3):  # diffusers' numbers of text encoders
                encoder = getattr(pipeline, f"text_encoder{'' if number == 1 else f'_{number}'}", None)
                if not isinstance(encoder, nn.Module):
                    continue
                keep = partial(_keep_ids, text.ids, number)
                hook = encoder.register_forward_pre_hook(keep, with_kwargs=True)
                stack.callback(hook.remove)
            results: tuple[Tensor | None, ...] = original(*args, **kwargs)
        text.states = results[0]
        return results

    pipeline.encode_prompt = encode_prompt
    try:
        yield encoded
    finally:
        del pipeline.encode_prompt  # restores the class's method


def _text_of_call(arguments: dict[str, Any]) -> str:
    """Return the text passed to a pipeline. Raises RegardError if there are several texts."""
    text = arguments.get("prompt")
    if isinstance(text, (list, tuple)) and len(text) == 1:
        text = text[0]
    if isinstance(text, (list, tuple)):
        raise RegardError(f"prompt: got {len(text)} texts, expected one at a time")
    if not isinstance(text, str):
        raise RegardError(f"prompt: got {type(text).__name__}, expected the text: embeddings don't show their words")
    for name in ("prompt_2", "prompt_3"):
        if arguments.get(name) not in (None, text, [text]):
            raise RegardError(f"{name}: got {shortened(str(arguments[name]))}, expected the same text as prompt")
    return text


def _keep_ids(stored: dict[int, list[int]], number: int, _: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    """Store the ids of an encoder's first call. This is a forward pre-hook."""
    ids = kwargs.get("input_ids", args[0] if args else None)
    if isinstance(ids, Tensor):
        stored.setdefault(number, ids[0].tolist())  # of the first call; later calls encode negative prompts


def read_prompt(pipeline: Any, encoded: EncodedText, encoders: Sequence[int], length: int) -> Prompt:
    """Match an encoded text's tokens to the keys of the model. length: the number of keys."""
    tokens, keys, notes, first_key = list[Token](), list[int](), list[str](), 0
    text = encoded.text
    for number in encoders:
        ids = encoded.ids.get(number)
        if ids is None:  # the third encoder is optional; without it, its keys are zeros
            continue
        tokenizer = getattr(pipeline, f"tokenizer{'' if number == 1 else f'_{number}'}")
        encoder_tokens, text, cut_notes = _tokens_of_ids(tokenizer, ids, text)
        tokens += encoder_tokens
        keys += range(first_key, first_key + len(encoder_tokens))
        notes += cut_notes
        first_key += len(ids)
    if first_key > length or not tokens:
        raise RegardError(f"the text has {first_key} tokens but the image attends to {length}: they can't be matched")
    return Prompt(text, tuple(tokens), tuple(keys), length, tuple(notes))


def _tokens_of_ids(tokenizer: Any, ids: list[int], text: str) -> tuple[list[Token], str, list[str]]:
    """Return the tokens for ids up to the end of the text, the text they spell, and a note if it was cut.

    Some pipelines change the text before encoding, for example to lower case. It is then decoded from the ids.
    """
    end = ids.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in ids else len(ids)
    ids = ids[:end]
    decoded = str(tokenizer.decode(ids, skip_special_tokens=True)).strip()
    for candidate in dict.fromkeys((text, decoded)):
        if not candidate.strip():
            continue
        tokens = encode(tokenizer, candidate).tokens
        if [token.id for token in tokens] == ids:
            return list(tokens), candidate, []
        if len(tokens) > len(ids) and [token.id for token in (*tokens[: end - 1], tokens[-1])] == ids:
            not_read = candidate[tokens[end - 2].end :].strip()
            note = f"The text encoder cut the text and didn't read {not_read!r}."
            return [*tokens[: end - 1], tokens[-1]], candidate, [note]
    raise RegardError(
        f"text {shortened(text)}: the pipeline's text encoder read other tokens than its tokenizer gives for it"
        if text.strip()
        else "the text is empty: there is no word to look at"
    )


@dataclass(frozen=True)
class HeatLayer:
    """An attention module whose queries are image positions: its path, heads, and grid of positions."""

    path: str
    heads: int
    grid: tuple[int, int]


@dataclass
class PromptHeat:
    """The attention weights from an image to the words of its prompt, by step and layer.

    layers: in execution order. weights: per step and layer, (n images, H heads, rows, columns, W + 1). The last axis
    has the W tokens of the prompt, then the sum over padding. H is 1 if only the mean of heads was kept. A position's
    weights sum to 1, or to less if image and words form a single sequence. others: attention modules whose keys aren't
    just the words, or the image and the words. beside: layers that also attend to something else in a separate call,
    such as an image with an IP-adapter. guided: whether the pipeline also ran without the words, for guidance.
    """

    prompt: Prompt = field(default=Prompt("", (), (), 0))
    layers: list[HeatLayer] = field(default_factory=list)
    weights: list[list[Float[Tensor, "n H rows columns W"]]] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    guided: bool = False

    @property
    def grid(self) -> tuple[int, int]:
        """Return the rows and columns of the finest grid among the layers."""
        return max((layer.grid for layer in self.layers), key=lambda grid: grid[0] * grid[1])

    def word(self, text: str) -> PromptWord:
        """Return a word of the prompt by its text. Raises RegardError if it occurs several times."""
        by_name = [word for word in self.prompt.words if word.name == text]
        if by_name:
            return by_name[0]
        occurrences = find_word(self.prompt.text, self.prompt.tokens, text)
        if len(occurrences) > 1:
            tokens = {*occurrences[0].tokens, *occurrences[1].tokens}
            names = ", ".join(repr(word.name) for word in self.prompt.words if tokens & {*word.tokens})
            raise RegardError(f"word {text!r} occurs {len(occurrences)} times: needs one of {names}")
        return PromptWord(occurrences[0].text, occurrences[0].tokens)

    def of(
        self, word: str | PromptWord, *, step: int | None = None, layer: int | None = None, head: int | None = None
    ) -> Float[Tensor, "n rows columns"]:
        """Return the heat map of a word on each image: the summed weights of its tokens.

        step, layer, head: None for the mean of all. A single layer's map has that layer's grid, a mean the finest grid.
        """
        tokens = list((self.word(word) if isinstance(word, str) else word).tokens)
        return self.mean(tokens, step=step, layer=layer, head=head)

    def mean(
        self, tokens: Sequence[int], *, step: int | None = None, layer: int | None = None, head: int | None = None
    ) -> Float[Tensor, "n rows columns"]:
        """Return the summed heat map of tokens on each image, as in `of`. Token W is the sum over padding."""
        steps = range(len(self.weights)) if step is None else [from_zero("step", step, len(self.weights), "there are")]
        numbers = range(len(self.layers)) if layer is None else [from_zero("layer", layer, len(self.layers), "it has")]
        rows, columns = self.grid if layer is None else self.layers[numbers[0]].grid
        total = torch.zeros(len(self.weights[0][0]), rows, columns, dtype=torch.float64)
        for number in numbers:
            index: slice | list[int] = slice(None)
            if head is not None:
                size, own_layer = self.weights[0][number].shape[1], self.layers[number]
                if size != own_layer.heads:
                    raise RegardError("head: only the mean of the heads was kept: use heads=True")
                index = [from_zero("head", head, size, f"layer {number} ({own_layer.path}) has")]
            for n in steps:
                of_word = self.weights[n][number][:, index][..., list(tokens)].sum(-1).double().mean(1)
                # each fine position gets the weight of the coarse position that covers it
                down = torch.arange(rows) * of_word.shape[1] // rows
                across = torch.arange(columns) * of_word.shape[2] // columns
                total += of_word[:, down][:, :, across]
        return (total / (len(numbers) * len(steps))).float()
