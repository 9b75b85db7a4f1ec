"""A tiny random encoder-decoder with a tokenizer of its own, for tests of what is shown of such."""

from pathlib import Path
from typing import Any

WORDS = tuple("a man on the river bank takes money from un homme sur la rive banque prend de argent".split())  # noqa: SIM905


def make_pair(folder: Path) -> Any:
    """Save a random BART (2 encoder layers, 3 decoder layers, 3 heads, M 24) with a tokenizer of whole words."""
    import tokenizers
    import torch
    import transformers

    vocabulary = {word: n for n, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", mask_token="<mask>",
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=len(vocabulary), d_model=24, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=37, decoder_ffn_dim=31, max_position_embeddings=29,
        forced_eos_token_id=None, init_std=0.4,
    )  # fmt: skip
    model = transformers.BartForConditionalGeneration(config).eval()
    model.save_pretrained(folder)
    return model
