"""What can be seen of 100,000 tokens: by regard, and how far every other tool comes.

A decoder of one layer and random weights (Llama's kind, M 64, one head, a small vocabulary) reads random ids. The
whole matrix would be 37 GiB; each process may have LARGEST bytes of addresses.
"""

import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import MIB, resident

LENGTH = 100_000
LARGEST = 16 << 30
SIZES = {
    "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
    "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 1 << 17,
}  # fmt: skip


def write(folder: str) -> None:
    """Write the model, with a tokenizer of as many words for the tools that ask for one."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**SIZES)).eval().save_pretrained(folder)
    words = {f"w{n}": n for n in range(SIZES["vocab_size"])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0", bos_token="w1", eos_token="w2").save_pretrained(
        folder
    )


def ids(length: int) -> list[int]:
    """Token ids at random."""
    return torch.randint(3, SIZES["vocab_size"], (length,), generator=torch.Generator().manual_seed(0)).tolist()


def looks(folder: str, tokens: list[int]) -> dict[str, Any]:
    """What regard shows of it, each with its processor seconds, and the peak of memory above the model."""
    import regard

    model = regard.load(folder, device="cpu")
    model.trace(ids=tokens[:16]).attention[0].statistics(8, (16, 16))  # loads and compiles what it needs
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, seconds = resident("VmRSS"), {}
    start = time.process_time()
    trace = model.trace(ids=tokens, logits=False, attention_outputs=False)
    seconds["trace"] = time.process_time() - start
    weights, half = trace.attention[0], len(tokens) // 2
    for name, look in {
        "row": lambda: weights[:, -1, :],
        "region": lambda: weights[:, half : half + 256, half - 256 : half],
        "whole": lambda: weights.statistics(8, (256, 256)),
    }.items():
        start = time.process_time()
        found = look()
        seconds[name] = time.process_time() - start
        if name == "row":
            sums = found.double().sum(-1)
            assert float((sums - 1).abs().max()) < 1e-5, sums
    return {"seconds": seconds, "mib": (resident("VmHWM") - before) / MIB, "status": trace.status.difference}
