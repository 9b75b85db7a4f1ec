"""Find the words of a pipeline's text, and store the attention of every position in an image to every word.

A pipeline's text encoders read a text that is padded to a fixed length; what they make of it is what the picture looks
at. Where the pipeline guides its picture, it runs texts without the words beside them, in one batch: which rows have
the words is found by comparing what the model is given with what the text encoders gave.

The weights are exact: those of cross-attention, or of the joint attention of picture and words, as the pipeline
computed with them. Layers have grids of their own; a mean over layers lays each on the finest, a coarse place over the
fine ones that it covers. (Tang et al. 2023, "What the DAAM: Interpreting Stable Diffusion Using Cross Attention", sum
heat as well, of grids that they smooth.)
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
    """How a model reads its words. encoders: the text encoders whose tokens are its keys, in order.

    first: what stands first where picture and words are one sequence; None if words are keys of their own.
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
    """A text as a pipeline's picture looks at it.

    tokens: of each text encoder that is read, padding left out; keys: the number of each token's key; length: of all
    keys. notes: what of the text was cut off.
    """

    text: str
    tokens: tuple[Token, ...]
    keys: tuple[int, ...]
    length: int
    notes: tuple[str, ...] = ()

    @property
    def padding(self) -> list[int]:
        """List the keys that stand for nothing."""
        keys = set(self.keys)
        return [key for key in range(self.length) if key not in keys]

    @property
    def words(self) -> "list[PromptWord]":
        """List the words of the text, once each, though several encoders read them; then the special tokens."""
        places: dict[tuple[int, int], list[int]] = {}
        starts = [0, *(n for n in range(1, len(self.tokens)) if self.keys[n] != self.keys[n - 1] + 1)]  # of encoders
        runs = zip(starts, [*starts[1:], len(self.tokens)], strict=True)
        for word in ([start + n for n in word] for start, stop in runs for word in words(self.tokens[start:stop])):
            first, last = self.tokens[word[0]], self.tokens[word[-1]]
            if not first.special:
                places.setdefault((first.start, last.end), []).extend(word)
        names = [spelling(self.tokens, token_places) for _, token_places in sorted(places.items())]
        made = [
            PromptWord(f"{name} ({names[:n].count(name) + 1})" if names.count(name) > 1 else name, tuple(token_places))
            for n, (name, (_, token_places)) in enumerate(zip(names, sorted(places.items()), strict=True))
        ]
        special = dict.fromkeys(token.text for token in self.tokens if token.special)
        return made + [
            PromptWord(name, tuple(n for n, token in enumerate(self.tokens) if token.text == name), special=True)
            for name in special
        ]


@dataclass(frozen=True)
class PromptWord:
    """A word of a text: what it is called, and its tokens' numbers."""

    name: str
    tokens: tuple[int, ...]
    special: bool = field(default=False)


@dataclass
class EncodedText:
    """Input and output of a pipeline's text encoders: ids (1, T) of each, and states (n, T, C) of all."""

    text: str
    ids: dict[int, list[int]] = field(default_factory=dict)
    states: Float[Tensor, "n T C"] | None = None

    def rows(self, states: Float[Tensor, "B T C"]) -> list[int]:
        """List the rows of what a model is given that have the words."""
        if self.states is None or self.states.shape[1:] != states.shape[1:]:
            return []
        text_states = self.states.to(states)
        return [n for n, row in enumerate(states) if any(torch.equal(row, state) for state in text_states)]


@contextmanager
def encoded_text(pipeline: Any, before: Callable[[], None]) -> Iterator[list[EncodedText]]:
    """Keep what a pipeline's text encoders are given and give inside the block; before: called before they are.

    The first is the text's: others are what the picture is led away from.
    """
    original = pipeline.encode_prompt
    named = inspect.signature(original)
    encoded: list[EncodedText] = []

    def encode_prompt(*args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
        before()
        given_as = named.bind(*args, **kwargs).arguments
        text = EncodedText(_one_text(given_as))
        if (encoded and encoded[0].text == text.text) or given_as.get("negative_prompt") in (text.text, [text.text]):
            raise RegardError("negative_prompt: it equals the text, so their runs can't be told apart: pass another")
        encoded.append(text)
        with ExitStack() as stack:
            for number in (1, 2, 3):  # as diffusers numbers them
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
        del pipeline.encode_prompt  # of the object; its class has its own


def _one_text(arguments: dict[str, Any]) -> str:
    """The text of a pipeline's call."""
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


def _keep_ids(kept: dict[int, list[int]], number: int, _: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    ids = kwargs.get("input_ids", args[0] if args else None)
    if isinstance(ids, Tensor):
        kept.setdefault(number, ids[0].tolist())  # the first: others are of what is led away from


def read_prompt(pipeline: Any, encoded: EncodedText, encoders: Sequence[int], length: int) -> Prompt:
    """Name the keys of a text that was encoded. length: how many keys the model has for it."""
    tokens, keys, notes, begin = list[Token](), list[int](), list[str](), 0
    shown = encoded.text
    for number in encoders:
        ids = encoded.ids.get(number)
        if ids is None:  # a pipeline goes without its third encoder: its keys are zeros
            continue
        tokenizer = getattr(pipeline, f"tokenizer{'' if number == 1 else f'_{number}'}")
        read, shown, cut = _tokens_of(tokenizer, ids, shown)
        tokens += read
        keys += range(begin, begin + len(read))
        notes += cut
        begin += len(ids)
    if begin > length or not tokens:
        raise RegardError(f"the text has {begin} tokens but the image attends to {length}: they can't be matched")
    return Prompt(shown, tuple(tokens), tuple(keys), length, tuple(notes))


def _tokens_of(tokenizer: Any, ids: list[int], text: str) -> tuple[list[Token], str, list[str]]:
    """The tokens of ids up to the end of the text, the text that they are of, and a note where it was cut.

    Some pipelines change the text (to lower case) before they encode it: then it is read from the ids.
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
            left = candidate[tokens[end - 2].end :].strip()
            note = f"The text encoder cut the text and didn't read {left!r}."
            return [*tokens[: end - 1], tokens[-1]], candidate, [note]
    raise RegardError(
        f"text {shortened(text)}: the pipeline's text encoder read other tokens than its tokenizer gives for it"
        if text.strip()
        else "the text is empty: there is no word to look at"
    )


@dataclass(frozen=True)
class HeatLayer:
    """An attention module whose queries are places of the picture: its path, its heads, and the grid of the places."""

    path: str
    heads: int
    grid: tuple[int, int]


@dataclass
class PromptHeat:
    """The weights from a picture to the words of its text.

    layers: in the order in which they run. weights: of each step and layer (n pictures, H heads, rows, columns, W + 1):
    of each token of the prompt, and last of all padding; H is 1 where the mean of heads was kept. The weights of a
    place sum to 1, or, where picture and words are one sequence, to what words get of it. others: attention modules
    that have no words among their keys, or others beside them. beside: of the layers those that look at something else
    as well, in a call of its own, as an IP-adapter has them look at a picture. guided: whether texts without the words
    ran as well.
    """

    prompt: Prompt = field(default=Prompt("", (), (), 0))
    layers: list[HeatLayer] = field(default_factory=list)
    weights: list[list[Float[Tensor, "n H rows columns W"]]] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)
    guided: bool = False

    @property
    def grid(self) -> tuple[int, int]:
        """Return the rows and columns of the finest grid."""
        return max((layer.grid for layer in self.layers), key=lambda grid: grid[0] * grid[1])

    def word(self, text: str) -> PromptWord:
        """Find a word of the text."""
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
        """Compute the heat of a word, all its tokens together, on each picture.

        step, layer, head: one of them; None for the mean of all. Of one layer in its own grid, else in the finest.
        """
        tokens = list((self.word(word) if isinstance(word, str) else word).tokens)
        return self.mean(tokens, step=step, layer=layer, head=head)

    def mean(
        self, tokens: Sequence[int], *, step: int | None = None, layer: int | None = None, head: int | None = None
    ) -> Float[Tensor, "n rows columns"]:
        """Compute the heat of tokens together, like `of` for a word; token number W is all padding."""
        steps = range(len(self.weights)) if step is None else [from_zero("step", step, len(self.weights), "there are")]
        numbers = range(len(self.layers)) if layer is None else [from_zero("layer", layer, len(self.layers), "it has")]
        rows, columns = self.grid if layer is None else self.layers[numbers[0]].grid
        total = torch.zeros(len(self.weights[0][0]), rows, columns, dtype=torch.float64)
        for number in numbers:
            at: slice | list[int] = slice(None)
            if head is not None:
                size, own_layer = self.weights[0][number].shape[1], self.layers[number]
                if size != own_layer.heads:
                    raise RegardError("head: only the mean of the heads was kept: use heads=True")
                at = [from_zero("head", head, size, f"layer {number} ({own_layer.path}) has")]
            for n in steps:
                of_word = self.weights[n][number][:, at][..., list(tokens)].sum(-1).double().mean(1)
                # a fine place has the number of the coarse one that it lies in
                down = torch.arange(rows) * of_word.shape[1] // rows
                across = torch.arange(columns) * of_word.shape[2] // columns
                total += of_word[:, down][:, :, across]
        return (total / (len(numbers) * len(steps))).float()
