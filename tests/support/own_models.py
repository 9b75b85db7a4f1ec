"""Transformers of ours for the tests: tiny random ones of every kind, with the tokenizer of three sentences."""

from typing import Any

import torch

import regard
from regard.models.model import Model
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from tests.support.annotations import no_checks_of_annotations as no_checks_of_annotations

TEXTS = ["A man is fishing on a river bank.", "She takes money.", "A bank"]
TARGETS = ["Un homme pêche au bord d'une rivière.", "Elle prend de l'argent !", "Une banque"]
KINDS: dict[str, dict[str, Any]] = {
    "gpt": {"length": 31},
    "post-norm": {"length": 31, "norm_first": False, "norm_embeddings": True},
    "llama": {"norm": "rms", "gated": True, "positions": "rotary", "key_heads": 1, "bias": False, "output": "free"},
    "alibi": {"positions": "alibi", "scale_embeddings": True},
    "bert": {"kind": "encoder", "length": 31, "segments": 2, "output": "none", "norm_first": False},
    "sines": {"kind": "encoder", "positions": "sinusoidal", "scale_embeddings": True},
}


def opened(name: str) -> Model:
    torch.manual_seed(0)
    tokenizer = tokenizers.words(TEXTS, frame="bert" if name == "bert" else "none")
    sizes = {"vocabulary": len(tokenizer), "d_model": 12, "heads": 3, "layers": 2, "initial": 0.4}
    model = Transformer(TransformerConfig(**(sizes | KINDS[name]))).eval()
    return regard.load(model, tokenizer=tokenizer)


def pair(**changes: Any) -> Model:
    torch.manual_seed(0)
    tokenizer = tokenizers.byte_pairs([*TEXTS, *TARGETS], size=300, frame="end")
    sizes = {"d_model": 12, "heads": 3, "layers": 2, "d_hidden": 19}
    config = TransformerConfig.translator(len(tokenizer), tokenizer.bos_token_id, **(sizes | changes))
    return regard.load(Transformer(config).eval(), tokenizer=tokenizer)


def translator(*texts: str) -> Model:
    """An encoder-decoder whose tokens are the words of the texts."""
    torch.manual_seed(5)
    words = tokenizers.words(texts, frame="end")
    sizes = TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    return regard.load(Transformer(sizes), tokenizer=words)
