"""The whole system in plain PyTorch, from words to a transformer that translates. Read it from top to bottom.

An untrained model writes nonsense. To run one: `numbers = dictionary(text)`, `model = Decoder(len(numbers))`,
`model.generate(ids(text, numbers)[None], 3)`. `[None]` makes a batch of one text, `[*numbers][n]` is word n.

Shapes: B texts, L tokens that attend, S tokens attended to, M = d_model, H heads. Source: Vaswani et al. 2017.
"""

import math

import torch
from torch import nn


def dictionary(text):
    """Number the different words of a text in sorted order, capitals first."""
    return {word: number for number, word in enumerate(sorted(set(text.replace(",", "").split())))}


def ids(text, numbers):
    """Look up the number of each word: the token ids, (L,)."""
    return torch.tensor([numbers[word] for word in text.replace(",", "").split()])


def sinusoidal(length, d_model):
    """Encode positions as waves: pair i is sin and cos of position / 10000^(2i / d_model), (L, M)."""
    rate = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (M / 2,): from fast to slow waves
    angle = torch.arange(length)[:, None] * rate  # (L, M / 2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d_model].float()  # cut if d_model is odd


def attention(query, key, value, mask=None):
    """Average the values, weighted by how well queries match keys: softmax(Q Kᵀ / √d_k) V. Also returns the weights."""
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (…, L, S); without the root, they grow with d_k
    if mask is not None:  # True: may be attended to
        scores = scores.masked_fill(~mask, -math.inf)  # exp(-inf) = 0: not attended to
    weights = scores.softmax(-1)  # each row sums to 1
    return weights @ value, weights  # (…, L, d_v), (…, L, S)


class SelfAttention(nn.Module):
    """One head: every token attends to all tokens of the same text."""

    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        self.query = nn.Linear(d_in, d_k, bias=False)  # what a token looks for
        self.key = nn.Linear(d_in, d_k, bias=False)  # what it is found by
        self.value = nn.Linear(d_in, d_v or d_k, bias=False)  # what it passes on

    def forward(self, x):  # (…, L, d_in) → (…, L, d_v)
        return attention(self.query(x), self.key(x), self.value(x))[0]


class CrossAttention(SelfAttention):
    """One head: the tokens of x attend to the tokens of another text, whose length can differ."""

    def forward(self, x, context):  # (…, L, d_in), (…, S, d_in) → (…, L, d_v)
        return attention(self.query(x), self.key(context), self.value(context))[0]


class MultiHeadAttention(nn.Module):
    """H heads of self- or cross-attention, each of width M / H, joined by an output projection: Concat(heads) W_O."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, context=None, mask=None):  # (B, L, M), (B, S, M) → (B, L, M)
        context = x if context is None else context  # the states of another text, or its own
        parts = self.query(x), self.key(context), self.value(context)  # (B, L, M), (B, S, M), (B, S, M)
        heads = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for part in parts)  # (B, H, L or S, M / H)
        mixed, _ = attention(*heads, mask)  # each head separately: (B, H, L, M / H)
        return self.output(mixed.transpose(-3, -2).flatten(-2))  # heads side by side again: (B, L, M)


class FeedForward(nn.Module):
    """Two linear layers, for each token separately. Without the activation between them, they'd equal a single one."""

    def __init__(self, d_model, d_hidden, activation):
        super().__init__()
        self.up, self.output, self.activation = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model), activation

    def forward(self, x):
        return self.output(self.activation(self.up(x)))


class Block(nn.Module):
    """One layer. Attention and MLP each take the normed vectors and add their output to the residual stream."""

    def __init__(self, d_model, heads, d_hidden=None, activation=nn.functional.gelu, cross=False):
        super().__init__()
        self.attention, self.attention_norm = MultiHeadAttention(d_model, heads), nn.LayerNorm(d_model)
        if cross:  # for a decoder that attends to an encoder's output
            self.cross, self.cross_norm = MultiHeadAttention(d_model, heads), nn.LayerNorm(d_model)
        self.feedforward = FeedForward(d_model, d_hidden or 4 * d_model, activation)
        self.feedforward_norm = nn.LayerNorm(d_model)

    def forward(self, x, context=None, mask=None):
        x = x + self.attention(self.attention_norm(x), mask=mask)  # norm: mean 0, spread 1, then a learned scale
        if context is not None:
            x = x + self.cross(self.cross_norm(x), context)  # no mask: the whole source is known
        return x + self.feedforward(self.feedforward_norm(x))  # each token separately


class Decoder(nn.Module):
    """A transformer that generates text, like GPT: each token attends to itself and the tokens before it."""

    def __init__(self, vocabulary, d_model=128, heads=4, layers=4, **block):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)  # a vector per token id, with an initial length of about 1
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.decoder = nn.ModuleList(Block(d_model, heads, **block) for _ in range(layers))
        self.decoder_norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocabulary, bias=False)
        self.head.weight = self.embedding.weight  # input and output use the same table

    def embed(self, ids):  # (B, L) → (B, L, M)
        # Without the factor √M, positions (of length √(M / 2)) would be much longer than tokens (of length 1).
        embedded = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return embedded + sinusoidal(*embedded.shape[-2:])

    def forward(self, ids, context=None):  # (B, L) → (B, L, vocabulary): the logits of each next token
        x, length = self.embed(ids), ids.shape[-1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()  # no token attends to later tokens
        for block in self.decoder:
            x = block(x, context, mask)
        return self.head(self.decoder_norm(x))

    @torch.no_grad()
    def generate(self, ids, count, temperature=0.0, context=None):  # (B, L) → (B, L + count)
        for _ in range(count):
            logits = self(ids, context)[:, -1] / max(temperature, 1e-9)  # at 0, the likeliest token has probability 1
            ids = torch.cat([ids, logits.softmax(-1).multinomial(1)], -1)
        return ids


class EncoderDecoder(Decoder):
    """A transformer that translates: `model.generate(bos, count, context=model.encode(source))`."""

    def __init__(self, vocabulary, d_model=128, heads=4, layers=4, **block):
        super().__init__(vocabulary, d_model, heads, layers, cross=True, **block)
        # encodes the source text, with the same embedding table. The decoder attends to its output
        self.encoder = nn.ModuleList(Block(d_model, heads, **block) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(d_model)

    def encode(self, source):  # (B, S) → (B, S, M): all source texts of equal length (no padding mask)
        x = self.embed(source)
        for block in self.encoder:
            x = block(x)
        return self.encoder_norm(x)
