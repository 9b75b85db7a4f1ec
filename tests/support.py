"""What several tests need: the two sentences, and tiny random models of any family."""

from pathlib import Path
from typing import Any

RIVER = "Write a poem about a man fishing on a river bank."
MONEY = "Write a poem about a man withdrawing money from a bank."


def make_tiny(folder: Path, minilm: Any, kind: str = "bert", **changes: Any) -> Any:
    """A tiny random model of a family, saved with the default model's tokenizer; returns the model."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {
        "vocab_size": minilm.tokenizer.vocab_size,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 37,
        "max_position_embeddings": 31,
    }
    if kind == "distilbert":
        sizes |= {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 37}
        del sizes["hidden_size"], sizes["num_hidden_layers"], sizes["num_attention_heads"]
    config = transformers.AutoConfig.for_model(kind, **(sizes | changes))
    model = transformers.AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    minilm.tokenizer.save_pretrained(folder)
    return model
