"""Every family of the installed transformers, as a tiny random model, traced and held against its own eager attention.

python -m benchmarks.families [FAMILY ...]    prints a line for each
python -m benchmarks.families --write         writes docs/families.md

Each family runs in a process of its own, with a time limit. A family is exact where all weights are within 1e-5 of what
`attn_implementation="eager", output_attentions=True` gives, and the last states within 1e-4.
"""

import argparse
import inspect
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

import regard
from regard.files import whole
from regard.models.assemble import OTHER_WEIGHTS
from regard.models.pretrained import Pretrained
from regard.trace import PairTrace, Trace

PAGE = Path(__file__).parent.parent / "docs" / "families.md"
SECONDS = 20
LENGTH, TARGET = 13, 7
# Sizes that make any configuration tiny; a name that a configuration lacks is left alone.
TINY: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 32,
    "word_embed_proj_dim": 32, "num_hidden_layers": 4, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2, "num_encoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "intermediate_size": 48,
    "d_ff": 48, "ffn_dim": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "hidden_dim": 48, "n_inner": 48,
    "ffn_hidden_size": 48, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "max_position_embeddings": 64, "n_positions": 64, "max_target_positions": 64, "max_source_positions": 64,
    "q_lora_rank": 16, "kv_lora_rank":     16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0, "hidden_dropout_prob":
    0.0, "layer_types": None, "rope_scaling": None, "embedding_dim": 32,
}  # fmt: skip


def main() -> None:
    """Sweep the families that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="model types of transformers; by default all")
    parser.add_argument("--write", action="store_true", help="write docs/families.md")
    given = parser.parse_args()
    rows = []
    for family in given.families or sorted(CONFIG_MAPPING_NAMES):
        kind, told = in_a_process(family)
        rows.append((family, kind, told))
        print(f"{family:32} {kind:9} {told}", flush=True)
    counts = {kind: sum(row[1] == kind for row in rows) for kind in ("exact", "noted", "refused", "not text", "wrong")}
    line = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    print(f"{len(rows)} families: {line}")
    if given.write:
        write(rows, line)


def in_a_process(family: str) -> tuple[str, str]:
    """(kind, what is told) of one family, found in a forked child that may crash or hang."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(SECONDS)
        try:
            kind, told = look(family)
        except BaseException as error:  # whatever a family does is told, never raised here
            kind, told = "refused", f"{type(error).__name__}: {first_line(error)}"
        os.write(written, f"{kind}\n{told}".encode()[:4000])
        os._exit(0)
    os.close(written)
    with os.fdopen(read, "rb") as answer:
        content = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if not content:
        return "refused", f"its process ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(
            status
        ) else "no answer"
    kind, _, told = content.partition("\n")
    return kind, told.replace("\n", " ")


def look(family: str) -> tuple[str, str]:
    """Make the family's tiny model, trace ids through it, compare."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = make(family)
    if model is None:
        return "not text", "no model that reads token ids alone"
    try:
        opened = Pretrained(model, None, name=family)
    except regard.RegardError:
        return "refused", "computes attention in code of its own, outside the attention interface"
    ids = torch.randint(3, 90, (LENGTH,)).tolist()
    target = torch.randint(3, 90, (TARGET,)).tolist()
    trace = opened.trace(ids=ids, target_ids=target if opened.pairs else None)
    expected = eager(model, ids, target if opened.pairs else None)
    worst = difference(trace, expected)
    last = trace.decoder if isinstance(trace, PairTrace) else trace
    final = getattr(expected, "last_hidden_state", None)
    apart = 0.0 if final is None else float((last.contextual - final[0]).abs().max())
    if worst is None:
        return "refused", "its eager attention gives no weights to compare with"
    parts = last.status.embedding_difference
    summed = "not found" if parts is None else f"{parts:.0e}"
    notes = "".join(f"; {note}" for note in last.status.notes)
    told = f"weights {worst:.0e}, last state {apart:.0e}, sum of embedding parts {summed}{notes}"
    if (
        worst > 1e-5
        and apart <= 1e-4
        and any(
            "left out" in note or "attention calls in" in note or note == OTHER_WEIGHTS for note in last.status.notes
        )
    ):
        return "noted", told
    return ("exact" if worst <= 1e-5 and apart <= 1e-4 else "wrong"), told


def make(family: str) -> Any:
    """A tiny random model of a family that reads token ids; None where it reads something else."""
    config_class = CONFIG_MAPPING[family]
    config = shrink(config_class())
    for mapping in (transformers.AutoModel, transformers.AutoModelForCausalLM, transformers.AutoModelForSeq2SeqLM):
        try:
            model = mapping.from_config(config)
        except ValueError:
            continue
        try:
            reads = "input_ids" in _takes(model) and model.get_input_embeddings() is not None
        except NotImplementedError:  # two towers, or none that reads ids
            reads = False
        if reads:
            return model.eval()
    return None


def shrink(config: Any) -> Any:
    """The same kind of configuration with tiny sizes, its parts too."""
    given = config.to_dict()
    changes: dict[str, Any] = {name: value for name, value in TINY.items() if name in given and value is not None}
    if "kv_lora_rank" in given:  # latent attention: every head has keys of its own
        changes["num_key_value_heads"] = TINY["num_attention_heads"]
    rope = given.get("rope_parameters")
    if isinstance(rope, dict) and "mrope_section" in rope:  # parts of half a head's width
        changes["rope_parameters"] = rope | {"mrope_section": [1, 1, 2]}
    for name in getattr(config, "sub_configs", ()):
        part = getattr(config, name, None)
        if isinstance(part, transformers.PreTrainedConfig):
            changes[name] = shrink(part).to_dict()
    for name in ("layer_types", "rope_scaling"):
        if isinstance(given.get(name), list):
            changes[name] = given[name][: TINY["num_hidden_layers"]]
    try:
        return type(config)(**changes)
    except Exception:  # a family that ties sizes together: keep its own layer count and vocabulary small at least
        few = {k: v for k, v in changes.items() if k in ("vocab_size", "num_hidden_layers", "n_layer", "n_layers")}
        return type(config)(**few)


def eager(model: Any, ids: list[int], target: list[int] | None) -> Any:
    """What the model says of itself with its eager attention."""
    model.set_attn_implementation("eager")
    inputs = {"input_ids": torch.tensor([ids])}
    if target is not None:
        inputs["decoder_input_ids"] = torch.tensor([target])
    with torch.no_grad():
        return model(**inputs, output_attentions=True, **({"use_cache": False} if "use_cache" in _takes(model) else {}))


def difference(trace: Trace | PairTrace, expected: Any) -> float | None:
    """Largest difference of any weight; None where the model gives none, infinity where their number differs."""
    if isinstance(trace, PairTrace):
        pairs = [
            (trace.encoder.attention, expected.encoder_attentions),
            (trace.decoder.attention, expected.decoder_attentions),
            (trace.decoder.cross, expected.cross_attentions),
        ]
    else:
        pairs = [(trace.attention, getattr(expected, "attentions", None))]
    worst: float | None = None
    for ours, theirs in pairs:
        theirs = [each for each in theirs or () if each is not None]
        if not theirs:
            continue
        ours = (
            ours[:: len(ours) // len(theirs)] if ours and len(ours) % len(theirs) == 0 else ours
        )  # several calls a layer
        if len(ours) != len(theirs):
            return float("inf")
        for mine, own in zip(ours, theirs, strict=True):
            own = own[0] if own.ndim == 4 else own
            if tuple(mine.shape) != tuple(own.shape):
                return float("inf")
            worst = max(worst or 0.0, float((mine.dense() - own).abs().max()))
    return worst


def _takes(model: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(model.forward).parameters)


def first_line(error: BaseException) -> str:
    """A message's first line, short."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else "")[:160]


def write(rows: list[tuple[str, str, str]], line: str) -> None:
    """Write docs/families.md."""
    table = "\n".join(f"| {family} | {kind} | {told.replace('|', '/')} |" for family, kind, told in rows)
    page = f"""# Families

What `regard` does with each family of transformers {transformers.__version__}, found with a tiny random model of each
(`python -m benchmarks.families --write`): {len(rows)} families, {line}.

*noted*: outputs are the model's own, and the status says what is special about the weights.
*exact*: all weights within 1e-5 of the family's own eager attention, last states within 1e-4. *refused*: the trace says
that it cannot, or the sweep could not make or compare such a model; the reason is given. *not text*: no model of the
family reads token ids alone.

| family | | largest differences, or why not |
|---|---|---|
{table}
"""
    with whole(PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    started = time.time()
    main()
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
