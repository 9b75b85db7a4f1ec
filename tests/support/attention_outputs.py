"""Models of many block shapes, tiny and random, run with every attention block watched."""

from dataclasses import replace
from typing import Any

import torch
import transformers

from regard.attention.recording import Call, record
from regard.capture.hf_attention import through_interface
from regard.capture.output_path import follow_outputs
from regard.capture.state import Capture
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.trace import Trace

SIZES = {
    "vocab_size": 101,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 37,
    "max_position_embeddings": 31,
    "pad_token_id": 0,
}
ENCODER_DECODER = {
    "vocab_size": 101,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 31,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
OTHERS = {
    "distilbert": {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 37, "vocab_size": 101},
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 3, "vocab_size": 101, "n_positions": 31},
    "marian": ENCODER_DECODER,
    "bart": ENCODER_DECODER,
    "t5": {"vocab_size": 101, "d_model": 24, "d_kv": 5, "num_heads": 3, "d_ff": 37, "num_layers": 2}
    | {"decoder_start_token_id": 0},
}


def make_model(kind: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A tiny random model of a family. Its norms and biases are random too: at 1 and 0 they would hide mistakes."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **(OTHERS.get(kind, SIZES) | changes))
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "bias" in name:
                weight.normal_(0, 0.3)
            elif weight.ndim == 1:
                weight.normal_(1, 0.3)
            elif "embed" not in name:
                weight.normal_(0, 0.2)
    return model.to(dtype)


def watch(model: Any, **inputs: Any) -> tuple[list[Call], list[AttentionOutput | UnverifiedOutput], Any]:
    """Run a model with regard's attention: its attention calls, the output of each, and what the model returns."""
    with torch.no_grad(), through_interface(model, Capture()), record() as calls, follow_outputs() as outputs:
        output = model(**inputs, output_hidden_states=True)
    return list(calls.values()), outputs, output


def traced(model: Any, ids: torch.Tensor, n: int = 0) -> Trace:
    """The trace of text n (a row of ids) of a model that reads one sequence; its words are called w00, w01, …"""
    trace = Model(model, None, name=model.config.model_type).trace(ids=ids)[n]
    trace.text = " ".join(f"w{i:02}" for i in range(ids.shape[1]))
    trace.tokens = tuple(
        replace(token, text=f"w{i:02}", start=4 * i, end=4 * i + 3) for i, token in enumerate(trace.tokens)
    )
    return trace
