"""The tools that are compared: how each, by its own documented call, gives the weights of all heads of some layers.

A tool is opened on a model folder and asked for layers; its answer is one (H, L, L) tensor a layer. Each loads the
model itself, in float32, with the attention implementation that it documents. Nothing is imported before it is asked.
"""

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Weights = Callable[[Tensor, Sequence[int]], list[Tensor]]  # ids (1, L), layers: an (H, L, L) tensor of each layer


class Tool(NamedTuple):
    """A tool: its package, the module that one imports, and how a folder is opened with it."""

    package: str
    module: str
    opened: Callable[[str], Weights]


def version(tool: Tool) -> str | None:
    """Which version is installed; None where it is not."""
    if importlib.util.find_spec(tool.module) is None:
        return None
    return importlib.metadata.version(tool.package)


def network(folder: str, implementation: str, head: bool = False) -> Any:
    """The folder's model, as transformers alone opens it: a decoder with its language head, an encoder if asked."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM

    decoder = "CausalLM" in (AutoConfig.from_pretrained(folder).architectures or [""])[0]
    kind = AutoModelForCausalLM if decoder else AutoModelForMaskedLM if head else AutoModel
    return kind.from_pretrained(folder, attn_implementation=implementation, dtype=torch.float32).eval()


def eager(folder: str) -> Weights:
    """transformers itself: output_attentions, without the logits, which nobody asked for."""
    body = network(folder, "eager").base_model

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        found = body(ids, output_attentions=True).attentions
        return [found[layer][0] for layer in layers]

    return weights


def hooked(folder: str) -> Weights:
    """transformers' eager attention with a hook on each wanted layer's module, so that the others' weights go."""
    body = network(folder, "eager").base_model
    modules = [module for name, module in body.named_modules() if name.endswith(("self_attn", "attention.self"))]

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        found: list[Tensor] = []
        handles = [modules[n].register_forward_hook(lambda _m, _i, out: found.append(out[1][0])) for n in layers]
        try:
            body(ids)
        finally:
            for handle in handles:
                handle.remove()
        return found

    return weights


def transformer_lens(folder: str) -> Weights:
    """TransformerLens's bridge: run_with_cache of hook_pattern of the wanted layers."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoTokenizer

    bridge = TransformerBridge.boot_transformers(
        folder, dtype=torch.float32, device="cpu", tokenizer=AutoTokenizer.from_pretrained(folder),
        hf_model=network(folder, "eager", head=True),
    )  # fmt: skip

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        names = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
        cache = bridge.run_with_cache(ids, names_filter=names, return_type=None)[1]
        return [cache[name][0] for name in names]

    return weights


def interp_engine(folder: str) -> Weights:
    """interp-engine on a CPU: its eager backend, capturing attn_probs (its vLLM backends need CUDA)."""
    from interp_engine import Address, capture, load_model

    model = load_model(folder, backend="eager", device="cpu", dtype="float32")

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        points = [Address("attn_probs", layer) for layer in layers]
        cache = capture(model, ids, points)
        return [cache[point][0] for point in points]

    return weights


def attnread(folder: str) -> Weights:
    """attnread: extract_attention of all heads of the wanted layers, under PyTorch's own kernel."""
    from attnread import extract_attention

    model = network(folder, "sdpa")
    heads = model.config.num_attention_heads

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        found = extract_attention(model, {"input_ids": ids}, [(n, head) for n in layers for head in range(heads)])
        return [torch.stack([found["text", n, head][0] for head in range(heads)]) for n in layers]

    return weights


def torchlens(folder: str) -> Weights:
    """TorchLens: a trace of all operations under PyTorch's own kernel, and the pattern of the wanted layers."""
    import torchlens

    body = network(folder, "sdpa").base_model
    names = [name for name, _ in body.named_modules() if name.endswith(("self_attn", "attention.self"))]

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        kept = torchlens.func("scaled_dot_product_attention")
        log = torchlens.trace(body, ids, save=kept, reconstruction_ready=True)
        return [log.modules[names[layer]].facets["pattern"][0] for layer in layers]

    return weights


def regard_dense(folder: str) -> Weights:
    """regard: a trace of the wanted layers, and all their weights written out, which it is made to avoid."""
    trace = regard_traced(folder)

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        traced = trace(ids, layers)
        return [traced.attention[n][:] for n in layers]

    return weights


def regard_traced(folder: str) -> Callable[[Tensor, Sequence[int]], Any]:
    """regard's trace of layers: from it any region of their weights can be asked for."""
    import regard

    model = regard.load(folder, device="cpu")
    return lambda ids, layers: model.trace(
        ids=ids[0].tolist(), layers=list(layers), logits=False, attention_outputs=False
    )


def regard_row(folder: str) -> Weights:
    """regard as it is meant: a trace, and of each head what the last token looks at."""
    trace = regard_traced(folder)

    def weights(ids: Tensor, layers: Sequence[int]) -> list[Tensor]:
        traced = trace(ids, layers)
        return [traced.attention[n][:, -1:, :] for n in layers]

    return weights


TOOLS: dict[str, Tool] = {
    "transformers, `output_attentions`": Tool("transformers", "transformers", eager),
    "transformers, hooks": Tool("transformers", "transformers", hooked),
    "TransformerLens": Tool("transformer-lens", "transformer_lens", transformer_lens),
    "interp-engine": Tool("interp-engine", "interp_engine", interp_engine),
    "attnread": Tool("attnread", "attnread", attnread),
    "TorchLens": Tool("torchlens", "torchlens", torchlens),
    "regard, all written out": Tool("regard", "regard", regard_dense),
    "regard, one token's row": Tool("regard", "regard", regard_row),
}
BASE = next(iter(TOOLS))  # whose time is 1
