"""Time and memory of long texts, each in a fresh process: python -m benchmarks.long

A causal model of random weights (Llama, 2 layers, M 576, 9 heads over 3, V 49,152) reads 16,384 tokens: a plain forward
pass by transformers, the trace of everything, the trace of one layer without logits, and that layer's figures. Then one
attention call of 131,072 tokens with all its figures. Memory is the peak above what the process had before, without
the model; beside it what `regard` foresaw.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

import regard
from benchmarks.attention import inputs
from benchmarks.measure import MIB, machine, resident
from regard.capture.options import CaptureOptions
from regard.memory import available, format_bytes
from regard.models.runner import Sizes

SIZES = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 2,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 1 << 17,
}


def main() -> None:
    """Print time and peak memory of each job."""
    jobs: dict[str, Callable[[int], Any]] = {"plain": plain, "trace": trace, "layer": layer, "attend": attend}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"of {', '.join(jobs)}; by default all")
    parser.add_argument("--quick", action="store_true", help="an eighth of the tokens: half a minute in all")
    parser.add_argument("--child", type=int, metavar="L", help=argparse.SUPPRESS)
    given = parser.parse_args()
    unknown = [name for name in given.jobs if name not in jobs]
    if unknown:
        parser.error(f"{unknown[0]!r} is no job; there are {', '.join(jobs)}")
    if given.child:
        print(json.dumps(jobs[given.jobs[0]](given.child)))
        return
    print(f"{machine()}, {format_bytes(available(torch.device('cpu')) or 0)} free")
    for name in given.jobs or jobs:
        length = (131072 if name == "attend" else 16384) // (8 if given.quick else 1)
        command = [sys.executable, "-m", "benchmarks.long", name, "--child", str(length)]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        print(f"\n{name}: {length} tokens; {(jobs[name].__doc__ or '').splitlines()[0]}", flush=True)
        for line in json.loads(done.stdout):
            print(f"  {line}")


def plain(length: int) -> list[str]:
    """The forward pass by transformers itself (SDPA), with logits; nothing is kept."""
    network, ids = model(), tokens(length)

    def run() -> Any:
        with torch.no_grad():
            return network(torch.tensor([ids]), use_cache=False).logits

    return [measured("forward", run)[0]]


def trace(length: int) -> list[str]:
    """Everything kept: both layers, all states, the logits of all tokens."""
    opened = regard.load(model())
    line, found = measured("trace", lambda: opened.trace(ids=tokens(length)))
    return [line, foreseen(opened.model, length, CaptureOptions()), checked(found)]


def layer(length: int) -> list[str]:
    """One layer kept, no logits; then all figures of that layer's attention."""
    opened = regard.load(model())
    line, found = measured("trace", lambda: opened.trace(ids=tokens(length), layers=[1], logits=False))
    weights = found.attention[1]
    figures = measured("figures of 9 heads", lambda: weights.statistics(8, (256, 256)))[0]
    return [line, foreseen(opened.model, length, CaptureOptions(frozenset([1]), False)), figures, checked(found)]


def attend(length: int) -> list[str]:
    """One causal attention call of 2 heads of width 64, and all its figures."""
    regard.attend(*inputs(1024, 1), causal=True).weights.statistics(8, (256, 256))  # loads and compiles what it needs
    query, key, value = inputs(length, 2)
    line, result = measured("output", lambda: regard.attend(query, key, value, causal=True))
    figures, _ = measured("figures", lambda: result.weights.statistics(8, (256, 256)))
    return [line, figures, f"one dense matrix of a head would be {format_bytes(length * length * 4)}"]


def measured(name: str, run: Callable[[], Any]) -> tuple[str, Any]:
    """What a job took: seconds, and the peak of the process's memory above what it had before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = resident("VmRSS"), time.perf_counter()
    result = run()
    seconds, peak, kept = time.perf_counter() - start, resident("VmHWM") - before, resident("VmRSS") - before
    return f"{name}: {seconds:.1f} s, peak {peak / MIB:.0f} MiB, {kept / MIB:.0f} MiB after it", result


def foreseen(network: Any, length: int, keep: CaptureOptions) -> str:
    """What regard said beforehand that it would take."""
    sizes = Sizes.of(network)
    need = sizes.trace_bytes(length, keep) + sizes.pass_bytes([length], keep, True, False)
    return f"foreseen: {need / MIB:.0f} MiB"


def checked(found: Any) -> str:
    """What the trace says of its own exactness."""
    status = found.status
    return f"weights within {status.difference:.1e} of the model's own attention ({status.rows_compared} rows)"


def model() -> Any:
    """The causal model of random weights."""
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()


def tokens(length: int) -> list[int]:
    """Token ids at random."""
    generator = torch.Generator().manual_seed(length)
    return torch.randint(SIZES["vocab_size"], (length,), generator=generator).tolist()


if __name__ == "__main__":
    main()
