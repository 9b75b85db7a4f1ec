"""What the tests of generation need: tiny random models that write, and what transformers itself makes of them."""

from typing import Any

import torch
import transformers

from regard.models.model import Model

IDS, NEW = [5, 17, 3, 60, 41, 9, 7], 13
SMALL = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 96}
DECODER = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 37,
    "max_position_embeddings": 31,
}
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 6, "n_positions": 31},
    "llama": DECODER,
    "gemma2": DECODER | {"head_dim": 4, "sliding_window": 5, "attn_logit_softcapping": 2.0},
    "mistral": DECODER | {"sliding_window": 5},
    "gpt_oss": DECODER
    | {"head_dim": 4, "sliding_window": 5, "num_local_experts": 2, "num_experts_per_tok": 1}
    | {"hidden_size": 32, "intermediate_size": 48},
    "llama4_text": DECODER | {"head_dim": 4, "attention_chunk_size": 5, "num_local_experts": 2},
    "doge": DECODER,
}
STACK = {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 6, "decoder_attention_heads": 6}
PAIRS: dict[str, dict[str, Any]] = {
    "marian": STACK | {"d_model": 24, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 31,
                       "decoder_start_token_id": 0, "scale_embedding": True},
    "t5": {"d_model": 24, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 6, "d_kv": 4, "d_ff": 37,
           "decoder_start_token_id": 0},
}  # fmt: skip
SAMPLED = {"do_sample": True, "temperature": 1.3, "top_k": 40, "top_p": 0.95, "repetition_penalty": 1.2}


def tiny(kind: str, **changes: Any) -> Any:
    """A tiny random language model whose attention is far from uniform."""
    torch.manual_seed(0)
    sizes = DECODERS.get(kind) or PAIRS[kind]
    config = transformers.AutoConfig.for_model(kind, **(SMALL | sizes | changes))
    auto = transformers.AutoModelForSeq2SeqLM if kind in PAIRS else transformers.AutoModelForCausalLM
    model = auto.from_config(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def opened(kind: str, tokenizer: Any = None, **changes: Any) -> Model:
    return Model(tiny(kind, **changes), tokenizer, name=f"tiny-{kind}")


def plain(model: Any, **options: Any) -> list[int]:
    """What transformers itself writes."""
    ids = torch.tensor([IDS])
    return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, **options)[0].tolist()


def whole(model: Any, **ids: list[int]) -> Any:
    """One full pass of the family's own eager attention."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        given = {name: torch.tensor([row]) for name, row in ids.items()}
        return model(**given, output_attentions=True, output_hidden_states=True, use_cache=False)


def close(ours: Any, theirs: Any, tolerance: float) -> None:
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=0)
