"""The models and the tokens that every tool is given, as folders that transformers' own loader opens."""

import copy
import os
from pathlib import Path
from typing import Any

import regard

DEPTH = 4  # of SmolLM2's 30 layers: their weights do not depend on later ones
DOCS = Path(__file__).parents[2] / "docs"


def encoder(folder: str) -> dict[str, Any]:
    """Write all-MiniLM-L6-v2, and the longest text that it takes."""
    model = regard.load(device="cpu")
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return {"name": "all-MiniLM-L6-v2", "layers": 6, "heads": 12, "texts": {512: tokens(model.tokenizer, 512)}}


def decoder(folder: str) -> dict[str, Any]:
    """Write the first layers of SmolLM2, or of a model of its shape and random weights where it is not here."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    source = os.environ.get("REGARD_SMOLLM2")
    model = regard.load(source if source else regard.load(device="cpu").model, device="cpu")
    if source:
        config = copy.deepcopy(model.model.config)
        del config.quantization_config
        name = f"SmolLM2-135M-Instruct, the first {DEPTH} of its 30 layers"
    else:
        config = LlamaConfig(hidden_size=576, intermediate_size=1536, num_attention_heads=9, num_key_value_heads=3,
                             max_position_embeddings=8192)  # fmt: skip
        name = f"{DEPTH} layers of SmolLM2's shape, random weights"
    config.num_hidden_layers = DEPTH
    torch.manual_seed(0)
    cut = LlamaForCausalLM._from_config(config, dtype=torch.float32).eval()
    if source:
        kept = {name: each for name, each in model.model.state_dict().items() if name in cut.state_dict()}
        cut.load_state_dict(kept)
    cut.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    texts = {length: tokens(model.tokenizer, length) for length in (512, 4096)}
    return {"name": name, "layers": DEPTH, "heads": config.num_attention_heads, "texts": texts}


def tokens(tokenizer: Any, length: int) -> list[int]:
    """The first tokens of this documentation, its own special tokens included."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md")))
    return tokenizer(text, truncation=True, max_length=length)["input_ids"]


MODELS = {"encoder": encoder, "decoder": decoder}
