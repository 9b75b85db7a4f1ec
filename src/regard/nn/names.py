"""The names by which models of transformers are asked for their sizes, so that the same code reads and watches ours."""

from typing import Any


class Names:
    """Answers for a `TransformerConfig`."""

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _NAMES[name](self)


_NAMES: dict[str, Any] = {
    "hidden_size": lambda config: config.d_model,
    "num_hidden_layers": lambda config: config.layers,
    "num_attention_heads": lambda config: config.heads,
    "num_key_value_heads": lambda config: config.heads if config.key_heads is None else config.key_heads,
    "head_dim": lambda config: config.head_width,
    "vocab_size": lambda config: config.vocabulary,
    "max_position_embeddings": lambda config: config.length,
    "is_encoder_decoder": lambda config: config.kind == "encoder-decoder",
    "decoder_start_token_id": lambda config: config.start,
}
