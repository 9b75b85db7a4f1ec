"""The configuration of a `regard.Transformer`: immutable, checked on creation, and stored as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, Literal, get_type_hints

from regard.checks import arguments_named, kind_needed
from regard.errors import RegardError

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]
Position = Literal["learned", "sinusoidal", "rotary", "alibi", "none"]
FORMAT, VERSION = "transformer", 1


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and options of a `regard.Transformer`. None means that the value is derived from other fields.

    kind: "encoder" reads a whole text at once, "decoder" reads from left to right and predicts the next token,
        "encoder-decoder" has both, with cross-attention.
    vocabulary: the number of token ids (V). An encoder-decoder uses the same vocabulary for both texts.
    length: the maximum number of tokens in a text. Only learned positions need it. Otherwise, None allows any length.
    layers: number per stack. d_model: width of the states (M). heads: number of query heads (H). key_heads: number of
        key and value heads (G). Default: heads. d_k: width of a head. Default: d_model / heads.
    d_hidden: width inside the feed-forward layer. Default: 4 · d_model. activation, gated: its type. Gated "silu" is
        SwiGLU, gated "gelu" is GEGLU.
    norm: layer norm or root-mean-square norm. norm_first: whether norms are before attention and feed-forward, with
        a final norm ("pre-norm"), or after each residual addition ("post-norm").
    positions: the type of positional encoding. rotary_base: the base of rotary and sinusoidal angles.
    segments: the number of segment types (BERT's token types), 0 for none.
    scale_embeddings: whether to multiply token embeddings by √d_model (Vaswani et al. 2017). Default: with sinusoidal
        positions. These have length √(d_model / 2), 36 times that of unscaled initial token embeddings (`initial`),
        which they would hide. With scaling, initial token embeddings are 1.4 times as long as positions.
    norm_embeddings: whether a norm follows the sum of the embeddings (BERT).
    output: the language head: "tied" to the token embeddings, "free", or "none". output_bias: whether it has a bias.
        output_transform: whether a layer with activation and norm comes before the head (BERT).
    bias: whether linear layers and layer norms have a bias.
    dropout: of the embeddings and of attention and feed-forward outputs. attention_dropout: of the weights. PyTorch's
        fused CPU kernel doesn't support it, so training on CPUs is slower with it.
    initial: standard deviation of the initial weights. start: the first token id of an encoder-decoder's decoder.
    """

    vocabulary: int
    kind: Kind = "decoder"
    length: int | None = None
    layers: int = 4
    d_model: int = 128
    heads: int = 4
    key_heads: int | None = None
    d_k: int | None = None
    d_hidden: int | None = None
    activation: Activation = "gelu"
    gated: bool = False
    norm: Literal["layer", "rms"] = "layer"
    norm_first: bool = True
    norm_eps: float = 1e-5
    positions: Position = "learned"
    rotary_base: float = 10000.0
    segments: int = 0
    scale_embeddings: bool | None = None
    norm_embeddings: bool = False
    output: Literal["tied", "free", "none"] = "tied"
    output_bias: bool = False
    output_transform: bool = False
    bias: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    initial: float = 0.02
    start: int | None = None

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            if needed := kind_needed(getattr(self, name), kind):
                raise _wrong(name, getattr(self, name), needed)
        if self.scale_embeddings is None:  # the dataclass is frozen
            object.__setattr__(self, "scale_embeddings", self.positions == "sinusoidal")
        sizes = ("vocabulary", "length", "layers", "d_model", "heads", "key_heads", "d_k", "d_hidden")
        for name in sizes:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise _wrong(name, getattr(self, name), "1 or more")
        if self.d_k is None and self.d_model % self.heads:
            raise _wrong("d_model", self.d_model, f"a multiple of the {self.heads} heads, or d_k as well")
        if self.key_heads is not None and self.heads % self.key_heads:
            raise _wrong("key_heads", self.key_heads, f"a number that divides the {self.heads} heads")
        if self.positions == "rotary" and self.head_width % 2:
            raise _wrong("d_k", self.head_width, "an even width, because rotary positions rotate pairs of components")
        if self.positions == "learned" and self.length is None:
            raise _wrong("length", None, "a number of tokens, because learned positions are a table")
        if self.segments < 0:
            raise _wrong("segments", self.segments, "0 or more")
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise _wrong(name, getattr(self, name), "a probability from 0 to below 1")
        for name in ("norm_eps", "rotary_base", "initial"):
            if not (getattr(self, name) > 0 and math.isfinite(getattr(self, name))):
                raise _wrong(name, getattr(self, name), "a number above 0")
        if self.output == "none" and (self.output_bias or self.output_transform):
            raise _wrong("output", "none", "'tied' or 'free' with output_bias or output_transform")
        if self.start is not None and not 0 <= self.start < self.vocabulary:
            raise _wrong("start", self.start, f"an id of the vocabulary, 0 to {self.vocabulary - 1}")
        if (self.start is None) == (self.kind == "encoder-decoder"):
            needed = (
                "an id that its decoder begins with"
                if self.start is None
                else f"None for a model of kind {self.kind!r}"
            )
            raise _wrong("start", self.start, needed)
        if self.segments and self.kind == "encoder-decoder":
            raise _wrong("segments", self.segments, "0 for an encoder-decoder")

    def as_json(self) -> dict[str, str | int | float | bool | None]:
        """Return the content of config.json."""
        return {"regard": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], name: str = "config.json") -> "TransformerConfig":
        """Make a config from the result of `as_json`.

        Raises:
            RegardError: the format differs or is newer, or an entry is unknown, missing or wrong. The message begins
                with the file's name.
        """
        if content.get("regard") != FORMAT:
            raise RegardError(f"{name}: regard is {content.get('regard')!r}, expected {FORMAT!r}")
        version = content.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise RegardError(f"{name} has format version {version!r}, this regard reads {VERSION}: update regard")
        options = {key: value for key, value in content.items() if key not in ("regard", "version")}
        try:
            return cls(**options)
        except RegardError as error:
            raise RegardError(f"{name}: {error}") from None

    @property
    def head_width(self) -> int:
        """The width of one head's queries, keys and values (D)."""
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def hidden_width(self) -> int:
        """The width inside the feed-forward layer."""
        return 4 * self.d_model if self.d_hidden is None else self.d_hidden

    # The same names as in configs of transformers, so that the same code reads both.

    hidden_size = property(attrgetter("d_model"))
    num_hidden_layers = property(attrgetter("layers"))
    num_attention_heads = property(attrgetter("heads"))
    head_dim = property(attrgetter("head_width"))
    vocab_size = property(attrgetter("vocabulary"))
    max_position_embeddings = property(attrgetter("length"))
    decoder_start_token_id = property(attrgetter("start"))

    @property
    def num_key_value_heads(self) -> int:
        """`key_heads`, or the number of query heads."""
        return self.heads if self.key_heads is None else self.key_heads

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether `kind` is "encoder-decoder"."""
        return self.kind == "encoder-decoder"

    @classmethod
    def nanogpt(cls, vocabulary: int, **changes: Any) -> "TransformerConfig":
        """Return the config of a small character-level GPT-2 without biases, as in nanoGPT's CPU example."""
        sizes: dict[str, Any] = {"length": 64, "layers": 4, "d_model": 128, "heads": 4, "bias": False}
        return cls(vocabulary=vocabulary, **(sizes | changes))

    @classmethod
    def gpt2(cls, vocabulary: int = 50257, **changes: Any) -> "TransformerConfig":
        """Return GPT-2 small's config (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners")."""
        sizes: dict[str, Any] = {"length": 1024, "layers": 12, "d_model": 768, "heads": 12, "activation": "gelu-tanh"}
        return cls(vocabulary=vocabulary, **(sizes | changes))

    @classmethod
    def bert(cls, vocabulary: int = 30522, **changes: Any) -> "TransformerConfig":
        """Return the config of BERT-base without a language head (Devlin et al. 2019, "BERT")."""
        sizes: dict[str, Any] = {
            "kind": "encoder", "length": 512, "layers": 12, "d_model": 768, "heads": 12, "norm_eps": 1e-12,
        }  # fmt: skip
        kinds: dict[str, Any] = {"norm_first": False, "norm_embeddings": True, "segments": 2, "output": "none"}
        return cls(vocabulary=vocabulary, **(sizes | kinds | changes))

    @classmethod
    def llama(cls, vocabulary: int = 32000, **changes: Any) -> "TransformerConfig":
        """Return the config of a small LLaMA (Touvron et al. 2023): rotary positions, RMS norm, SwiGLU, no biases."""
        sizes: dict[str, Any] = {
            "length": 2048, "layers": 8, "d_model": 512, "heads": 8, "d_hidden": 1376, "activation": "silu",
        }  # fmt: skip
        kinds: dict[str, Any] = {"gated": True, "norm": "rms", "positions": "rotary", "output": "free", "bias": False}
        return cls(vocabulary=vocabulary, **(sizes | kinds | changes))

    @classmethod
    def translator(cls, vocabulary: int, start: int, **changes: Any) -> "TransformerConfig":
        """Return the config of a small encoder-decoder (Vaswani et al. 2017). Pre-norm avoids a long warm-up."""
        sizes: dict[str, Any] = {
            "layers": 3, "d_model": 256, "heads": 8, "d_hidden": 512, "activation": "relu", "dropout": 0.1,
        }  # fmt: skip
        kinds: dict[str, Any] = {"kind": "encoder-decoder", "positions": "sinusoidal", "scale_embeddings": True}
        width = (sizes | changes)["d_model"]
        first: dict[str, Any] = {"initial": width**-0.5 if isinstance(width, int) and width > 0 else 0.02}
        return cls(vocabulary=vocabulary, start=start, **(sizes | kinds | first | changes))


TransformerConfig.__init__ = arguments_named(TransformerConfig.__init__)  # type: ignore[method-assign]


def _wrong(name: str, value: Any, needed: str) -> RegardError:
    return RegardError(f"{name}: got {value!r}, expected {needed}")
