"""What is measured here against TransformerLens, where it is installed: python -m benchmarks.transformer_lens

Its bridge around a copy of the same model, with eager attention, gives attention weights, states, the outputs of heads
and a patched run by its own hooks. What a head adds to a logit is computed of its hooks by hand. REGARD_SMOLLM2 names
the folder of the model.
"""

import copy
import os
import sys
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

import regard
from benchmarks.measure import machine, verdict
from regard.models.model import Model

FOLDER = os.environ.get("REGARD_SMOLLM2", "")
TEXT = "The capital of France is"
OTHER = "The capital of Italy is"
LAYER, PLACE = 10, 3  # of the patch
LARGEST = 1e-5


def main() -> None:
    """Print the largest difference of each, as a part of the largest number, of weights as it is."""
    if not FOLDER:
        sys.exit("REGARD_SMOLLM2 names no folder")
    print(machine())
    model = regard.load(FOLDER)
    trace, other, bridge = model.trace(TEXT), model.trace(OTHER), bridged(model)
    ids = torch.tensor([[token.id for token in trace.tokens]])
    with torch.inference_mode():
        logits, cache = bridge.run_with_cache(ids)
    depth = len(trace.attention)
    weights = [cache[f"blocks.{n}.attn.hook_pattern"][0] for n in range(depth)]
    apart = max(float((weights[n] - trace.attention[n][:]).abs().max()) for n in range(depth))
    print(f"attention weights of {depth} layers: {apart:.1e}, at most {LARGEST:.0e}{verdict(apart, LARGEST)}")
    told("states", torch.stack([cache[f"blocks.{n}.hook_out"][0] for n in range(depth)]),
         torch.stack([trace.hidden_states[n + 1] for n in range(depth)]))  # fmt: skip
    told("logits", logits[0], trace.logits)
    found = dict(regard.attribution(model, trace, len(trace.tokens) - 1, "Paris", against="Rome").by())
    theirs = added_by_heads(model, cache, trace.hidden_states[-1][-1], "Paris", "Rome")
    ours = torch.tensor(
        [[found.get(f"layer {n}, head {h}", 0.0) for h in range(theirs.shape[1])] for n in range(depth)]
    )
    told("what each head adds to a difference of logits", theirs, ours)

    def hook(states: Tensor, hook: object) -> Tensor:  # it is called by this name
        states[0, PLACE] = other.hidden_states[LAYER + 1][PLACE]
        return states

    with torch.inference_mode():
        patched = bridge.run_with_hooks(ids, fwd_hooks=[(f"blocks.{LAYER}.hook_out", hook)])
    patch = regard.patch("hidden_states", layer=LAYER, at=PLACE, source=other)
    told("logits of a patched run", patched[0], model.trace(TEXT, interventions=[patch]).logits)


def told(name: str, theirs: Tensor, ours: Tensor) -> None:
    """Print how far two tensors are from each other."""
    apart = float((theirs - ours).abs().max() / ours.abs().max())
    print(f"{name}, of the largest: {apart:.1e}, at most {LARGEST:.0e}{verdict(apart, LARGEST)}")


def added_by_heads(model: Model, cache: Any, last: Tensor, token: str, other: str) -> Tensor:
    """What each head adds to the difference of two logits at the last token, (layers, H), of its hooks' numbers."""
    hf = model.model
    one, two = (model.tokenizer(f" {each}", add_special_tokens=False)["input_ids"][0] for each in (token, other))
    table, norm = hf.get_output_embeddings().weight.double(), hf.model.norm
    scale = (last.double().square().mean() + norm.variance_epsilon).rsqrt()
    direction = (table[one] - table[two]) * norm.weight.double() * scale
    rows = []
    for n, layer in enumerate(hf.model.layers):
        z = cache[f"blocks.{n}.attn.hook_z"][0, -1].double()  # (H, E)
        rows.append((z.flatten() * (direction @ layer.self_attn.o_proj.weight.double())).view(z.shape).sum(1))
    return torch.stack(rows).detach()


def bridged(model: Model) -> Any:
    """TransformerLens's bridge around a copy of the model, into which it puts modules of its own."""
    from transformer_lens.model_bridge import TransformerBridge

    with TemporaryDirectory() as folder:
        model.model.config.save_pretrained(folder)
        copied = copy.deepcopy(model.model)
        copied.set_attn_implementation("eager")
        return TransformerBridge.boot_transformers(
            folder, dtype=torch.float32, device="cpu", tokenizer=model.tokenizer, hf_model=copied
        )


if __name__ == "__main__":
    main()
