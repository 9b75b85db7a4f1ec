"""What ablations cost in `attend`, as ratios inside one run: python -m benchmarks.ablations

Ratios are medians of rounds in which both sides take turns, and behind them the ratio of both sides' fastest rounds,
which a busy machine disturbs less; with --threads 1 no thread waits for another that is not being run. Both sides are
calls of `attend` under an open record, as in a trace. An ablated edge is from one query to one key, in all heads of all
texts; "read" is one row of the map on top of it. Float32, width 32 at 256 tokens (MiniLM), 64 at 2048 (SmolLM2).
"""

import argparse
import statistics
from collections.abc import Callable, Sequence

import torch

import regard
from benchmarks.measure import machine, seconds, verdict
from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, ablating
from regard.attention.recording import scope

# name, texts, heads, key heads, tokens, width, causal
SIZES = (
    ("MiniLM, 12 heads × 256 tokens × 8 texts", 8, 12, 12, 256, 32, False),
    ("SmolLM2, 9 heads (3 of keys) × 2048 tokens, causal", 1, 9, 3, 2048, 64, True),
    ("12 heads × 2048 tokens", 1, 12, 12, 2048, 64, False),
)


def main() -> None:
    """Print the ratios of every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--threads", type=int, help="torch's threads, by default as many as it takes")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    print(machine())
    with torch.inference_mode():
        for name, *size in SIZES:
            print(f"\n{name}", flush=True)
            overheads(*size, count=20 if given.quick else 100)


def overheads(texts: int, heads: int, groups: int, length: int, width: int, causal: bool, count: int) -> None:
    """Each kind of cut against the same call without one."""
    generator = torch.Generator().manual_seed(length)
    query, key, value = (
        torch.randn(texts, n, length, width, generator=generator) for n in (heads, groups, groups)
    )  # (B, H|G, L, D)

    def call(cuts: Sequence[Ablation], row: int | None = None) -> Callable[[], object]:
        def run() -> object:
            with regard.record() as calls, scope("layer.0"):
                if not cuts:
                    result = regard.attend(query, key, value, causal=causal)
                else:
                    with ablating(cuts):
                        result = regard.attend(query, key, value, causal=causal)
                return calls, result, None if row is None else result.weights[:, :, row]

        return run

    last, middle = length - 1, length // 2
    one = EdgeAblation(queries=[last], keys=[middle])
    kinds: list[tuple[str, Sequence[Ablation], int | None, float | None]] = [
        ("nothing", [], None, None),
        ("a cut of another layer", [HeadAblation(layers={1})], None, 1.02),
        ("a head", [HeadAblation(layers={0}, heads={5})], None, 1.02),
        ("an edge", [one], None, 1.10),
        ("an edge in one head", [EdgeAblation(heads=[5], queries=[last], keys=[middle])], None, 1.10),
        ("an edge, read", [one], last, 1.10),
        (
            "a word's edges (4 queries × 4 keys)",
            [EdgeAblation(queries=range(4, 8), keys=range(middle, middle + 4))],
            None,
            1.1,
        ),
        ("a key of every query", [EdgeAblation(keys=[middle])], None, None),
    ]
    for name, cuts, row, target in kinds:
        against, mine, ratio, best = turns(call([], row), call(cuts, row), count)
        wanted = "" if target is None else f", at most {target:.2f}{verdict(ratio, target)}"
        times = f"{against * 1e3:.2f} ms, cut {mine * 1e3:.2f} ms"
        print(f"  {name}: {times}, ratio {ratio:.3f} (fastest {best:.3f}){wanted}", flush=True)


def turns(theirs: Callable[[], object], ours: Callable[[], object], count: int) -> tuple[float, float, float, float]:
    """Median seconds of both, who take turns at being first, the median of the ratios, and the ratio of the fastest."""
    theirs(), ours()
    times = []
    for n in range(count):
        if n % 2:
            mine = seconds(ours)
            times.append((seconds(theirs), mine))
        else:
            times.append((seconds(theirs), seconds(ours)))
    against, own = zip(*times, strict=True)
    ratio = statistics.median(b / a for a, b in times)
    return statistics.median(against), statistics.median(own), ratio, min(own) / min(against)


if __name__ == "__main__":
    main()
