"""A transformer made of regard's layers, for training and tracing: encoder, decoder or encoder-decoder.

    ids ─▶ learned + positional (+ segment) embeddings ─▶ [ attention ▸ (cross ▸) feed-forward ] × layers ─▶ head

Shapes: B batch, L tokens, T tokens of an encoder-decoder's target, M model width, V vocabulary. Sources: Vaswani et al.
2017, "Attention Is All You Need"; for the position of the norms: Xiong et al. 2020, "On Layer Normalization in the
Transformer Architecture".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.errors import RegardError
from regard.nn.config import TransformerConfig
from regard.nn.layer import ACTIVATIONS, norm_of, stack
from regard.nn.multihead import KeyValueCache
from regard.nn.positions import sinusoidal_at


class Output(NamedTuple):
    """The output of a forward pass. Missing outputs are None. For an encoder-decoder, L is the target's length.

    last_hidden_state: after the final norm, before the language head.
    """

    last_hidden_state: Float[Tensor, "B L M"]
    logits: Float[Tensor, "B L V"] | None
    encoder_last_hidden_state: Float[Tensor, "B S M"] | None = None


class Transformer(nn.Module):
    """A transformer. `model(ids)`, or `model(source_ids, target_ids)` for an encoder-decoder, returns an `Output`.

    Masks mark padding: True (or 1) for real tokens. Padding, on either side, doesn't change a text's results. Each
    attention call goes through `regard.attend` with its module's path ("decoder.3.attention"), so
    `regard.record()` records all of them. `regard.load(model, tokenizer=...)` traces texts.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config, width = config, config.d_model
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.positions: nn.Module | None = None  # added to the token embeddings
        if config.positions == "learned":
            assert config.length is not None
            self.positions = nn.Embedding(config.length, width)
        elif config.positions == "sinusoidal":
            self.positions = SinusoidalEmbedding(width, config.rotary_base)
        self.segments = nn.Embedding(config.segments, width) if config.segments else None
        self.embedding_norm = norm_of(config) if config.norm_embeddings else None
        self.dropout = nn.Dropout(config.dropout)
        encodes, decodes = config.kind != "decoder", config.kind != "encoder"
        final = config.norm_first
        self.encoder = stack(config, "encoder", causal=False, crossing=False) if encodes else None
        self.encoder_norm = norm_of(config) if encodes and final else None
        self.decoder = stack(config, "decoder", causal=True, crossing=encodes) if decodes else None
        self.decoder_norm = norm_of(config) if decodes and final else None
        self.transform = Transform(config) if config.output_transform else None
        self.head = None if config.output == "none" else nn.Linear(width, config.vocabulary, config.output_bias)
        if self.head is not None and config.output == "tied":
            self.head.weight = self.embedding.weight
        self.initialise()

    def forward(
        self,
        input_ids: Int[Tensor, "B L"],
        decoder_input_ids: Int[Tensor, "B T"] | None = None,
        *,
        attention_mask: Bool[Tensor, "B L"] | Int[Tensor, "B L"] | None = None,
        decoder_attention_mask: Bool[Tensor, "B T"] | Int[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B L"] | None = None,
    ) -> Output:
        """Compute states and logits of all tokens.

        Args:
            input_ids: the text, or an encoder-decoder's source.
            decoder_input_ids: an encoder-decoder's target.
            attention_mask, decoder_attention_mask: True or 1 for real tokens, if there is padding.
            token_type_ids: segments of the text's tokens. Default: 0.

        Raises:
            RegardError: there are more tokens than positions, an id isn't in the vocabulary, or a target is missing or
                not supported.
        """
        if (decoder_input_ids is None) == (self.config.kind == "encoder-decoder"):
            wanted = "needs" if decoder_input_ids is None else "does not take"
            raise RegardError(f"decoder_input_ids: a model of kind {self.config.kind!r} {wanted} them")
        if self.encoder is None:
            return self.decode(input_ids, mask=attention_mask, segments=token_type_ids)
        encoded = self.encode(input_ids, mask=attention_mask, segments=token_type_ids)
        if decoder_input_ids is None:
            return Output(encoded, self.logits(encoded))
        return self.decode(decoder_input_ids, encoded, mask=decoder_attention_mask, context_mask=attention_mask)

    def encode(
        self,
        ids: Int[Tensor, "B L"],
        *,
        mask: Bool[Tensor, "B L"] | Int[Tensor, "B L"] | None = None,
        segments: Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B L M"]:
        """Compute the encoder's last hidden states. For arguments, see `forward`."""
        if self.encoder is None:
            raise RegardError("encode: this model is a decoder")
        at = positions_in_padded_batch(ids, mask)
        x = self._embed(ids, at, segments)  # (B, L, M)
        padding = None if at.keys is None else masks.padding(at.keys)
        for layer in self.encoder:
            x = layer(x, positions=at.positions, mask=padding)
        return x if self.encoder_norm is None else self.encoder_norm(x)

    def decode(
        self,
        ids: Int[Tensor, "B T"],
        context: Float[Tensor, "B L M"] | None = None,
        *,
        mask: Bool[Tensor, "B T"] | Int[Tensor, "B T"] | None = None,
        context_mask: Bool[Tensor, "B L"] | Int[Tensor, "B L"] | None = None,
        segments: Int[Tensor, "B T"] | None = None,
        caches: Sequence[KeyValueCache] | None = None,
        only_last: bool = False,
    ) -> Output:
        """Compute the decoder's states and logits.

        Args:
            context: for an encoder-decoder, the output of `encode`. context_mask: its mask. segments: token types.
            caches: from `caches()`. The ids continue the ids of earlier calls, without padding.
            only_last: whether to compute only the last token's logits, (B, 1, V).
        """
        if self.decoder is None:
            raise RegardError("decode: this model is an encoder")
        if (context is None) == (self.encoder is not None):
            wanted = "needs" if context is None else "does not take"
            raise RegardError(f"context: a model of kind {self.config.kind!r} {wanted} one")
        if caches is not None and mask is not None:
            raise RegardError("mask: leave it out with caches, whose texts have no padding")
        at = positions_in_padded_batch(ids, mask, len(caches[0]) if caches else 0, causal=True)
        x = self._embed(ids, at, segments)  # (B, T, M)
        padding = None if at.keys is None else masks.padding(at.keys)
        across = None if context_mask is None or bool(context_mask.all()) else masks.padding(context_mask.bool())
        for n, layer in enumerate(self.decoder):
            cache = None if caches is None else caches[n]
            x = layer(x, context, positions=at.positions, mask=padding, context_mask=across, cache=cache)
        x = x if self.decoder_norm is None else self.decoder_norm(x)
        return Output(x, self.logits(x[:, -1:] if only_last else x), context)

    def logits(self, states: Float[Tensor, "B L M"]) -> Float[Tensor, "B L V"] | None:
        """Compute the language head's logits from last hidden states, or return None without a head."""
        if self.head is None:
            return None
        return self.head(states if self.transform is None else self.transform(states))

    def caches(self) -> list[KeyValueCache]:
        """Return empty caches, one per layer of the decoder, for decoding step by step."""
        return [KeyValueCache() for _ in self.decoder or ()]

    @torch.no_grad()
    def initialise(self) -> None:
        """Initialize weights from a normal distribution and biases with 0.

        With pre-norm, weights of outputs added to the states are divided by √(2 · layers) (Radford et al. 2019).
        """
        config = self.config
        for name, parameter in self.named_parameters():
            std = config.initial
            if name.endswith("output.weight") and config.norm_first:
                std /= (2 * config.layers) ** 0.5
            if name == "embedding.weight" and config.scale_embeddings:
                std = config.d_model**-0.5
            if parameter.ndim == 2:
                parameter.normal_(0.0, std)
            else:
                parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)

    # The same interface as transformers models, so that the same code works with both.

    main_input_name = "input_ids"
    device = property(attrgetter("embedding.weight.device"), doc="The device of its weights.")
    dtype = property(attrgetter("embedding.weight.dtype"), doc="The dtype of its weights.")

    @property
    def base_model(self) -> "Transformer":
        """The model itself."""
        return self

    def get_input_embeddings(self) -> nn.Module:
        """Return the table of token embeddings."""
        return self.embedding

    def get_output_embeddings(self) -> nn.Linear | None:
        """Return the language head's linear layer."""
        return self.head

    def _embed(self, ids: Tensor, at: "PaddedPositions", segments: Tensor | None) -> Tensor:
        """Return the input of the first layer for token ids, (B, L, M)."""
        check_transformer_ids(ids, at.stop, self.config.vocabulary, self.config.length)
        x = self.embedding(ids)
        if self.config.scale_embeddings:
            x = x * self.config.d_model**0.5
        if self.segments is not None:  # first, as in BERT's sum, for the same bits
            x = x + self.segments(torch.zeros_like(ids) if segments is None else segments)
        elif segments is not None:
            raise RegardError("token_type_ids: the model's config has segments=0, leave them out")
        if self.positions is not None:
            x = x + self.positions(at.positions)
        return self.dropout(x if self.embedding_norm is None else self.embedding_norm(x))


class Transform(nn.Module):
    """The layer before BERT's language head: linear, activation, norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.d_model, config.d_model, config.bias)
        self.activation = config.activation
        self.norm = norm_of(config)

    def forward(self, x: Float[Tensor, "B L M"]) -> Float[Tensor, "B L M"]:
        """Compute the head's input from the last hidden states."""
        return self.norm(ACTIVATIONS[self.activation](self.linear(x)))


class SinusoidalEmbedding(nn.Module):
    """A table of sines and cosines by position. Rows are computed once, in float64, and aren't trained."""

    _like: Tensor

    def __init__(self, width: int, base: float = 10000.0) -> None:
        super().__init__()
        self.width, self.base = width, base
        self._table = torch.empty(0, width, dtype=torch.float64)
        self.register_buffer("_like", torch.empty(0), persistent=False)  # follows the model's dtype, like weights

    def forward(self, positions: Int[Tensor, "*b L"]) -> Float[Tensor, "*b L M"]:
        """Return the encodings of the given positions."""
        size = int(positions.max()) + 1 if positions.numel() else 0
        table = self._table
        if table.shape[0] < size or table.device != positions.device:
            with torch.inference_mode(False), torch.no_grad():  # training couldn't use a table made in inference mode
                rows = torch.arange(max(size, 2 * table.shape[0], 64), device=positions.device)
                table = self._table = sinusoidal_at(rows, self.width, self.base)
        return table[positions].to(self._like.dtype)


@dataclass(frozen=True, eq=False)
class PaddedPositions:
    """The positions of tokens in a padded batch, (L,) if they are equal for all texts.

    keys: True for real tokens, or None if no padding mask is needed. stop: an upper limit of positions (exclusive).
    """

    positions: Int[Tensor, "*b L"]
    keys: Bool[Tensor, "B L"] | None
    stop: int


def positions_in_padded_batch(
    ids: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"] | Int[Tensor, "B L"] | None,
    start: int = 0,
    *,
    causal: bool = False,
) -> PaddedPositions:
    """Return the position of each token of a batch in its text, without padding.

    mask: True or 1 for real tokens. start: position of the first token. causal: whether no token attends to later
    tokens, so padding on the right needs no mask.
    """
    length = ids.shape[1]
    plain = torch.arange(start, start + length, device=ids.device)
    if mask is None:
        return PaddedPositions(plain, None, start + length)
    if mask.shape != ids.shape:
        raise RegardError(f"mask: got shape {tuple(mask.shape)}, expected {tuple(ids.shape)}, like the ids")
    real = mask.bool()
    if bool(real.all()):
        return PaddedPositions(plain, None, length)
    if not bool((real[:, 1:] & ~real[:, :-1]).any()):  # padding only on the right doesn't change positions
        return PaddedPositions(plain, None if causal else real, length)
    return PaddedPositions((real.cumsum(1) - 1).clamp(min=0), real, int(real.sum(1).max()))


def check_transformer_ids(ids: Int[Tensor, "B L"], stop: int, vocabulary: int, limit: int | None) -> None:
    """Raise RegardError for ids that a model can't read. On GPUs or if compiled, only the embedding checks their range.

    stop: the last position + 1. vocabulary: the number of ids. limit: the number of positions, or None.
    """
    if not ids.numel():
        raise RegardError(f"ids: got shape {tuple(ids.shape)}, expected at least one token")
    if limit is not None and stop > limit:
        raise RegardError(f"ids: got {stop} tokens, but the model takes at most {limit}")
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(number) for number in torch.aminmax(ids))
        if low < 0 or high >= vocabulary:
            raise RegardError(f"ids: got id {low if low < 0 else high}, but the model has ids 0 to {vocabulary - 1}")
