"""The speed and memory of attention on this machine's CPU, as ratios inside one run: python -m benchmarks.attention

Ratios are medians of rounds in which both sides take turns. Memory is measured in fresh processes.
B 1, H 12, D 64, float32, without a mask and causal, as everywhere on the page docs/performance.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch.nn import functional as F

import regard
from benchmarks.measure import MIB, machine, resident, rounds, seconds, share_of_peak, verdict
from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch
from regard.attention.scores import ScoreRule
from regard.files import whole

HEADS, WIDTH, TOP, PARTS = 12, 64, 8, 256
ALL = regard.Statistics(TOP, (PARTS, PARTS))


def main() -> None:
    """Print the figures of the parts that were asked for."""
    parts = {
        "output": output,
        "short": short,
        "sweep": one_sweep,
        "statistics": asked_afterwards,
        "dense": against_dense,
        "region": region,
        "call": call,
        "memory": memory,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}; by default all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds: half a minute in all")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where the memory part draws its figures (PNG)")
    parser.add_argument("--child", nargs=2, type=int, metavar=("L", "H"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(peak_above_inputs(*given.child)))
        return
    parts["memory"] = partial(memory, plot=given.plot)
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]!r} is no part; there are {', '.join(parts)}")
    print(machine())
    with torch.inference_mode():
        for name in given.parts or parts:
            described = getattr(parts[name], "func", parts[name]).__doc__ or ""
            print(f"\n{name}: {described.splitlines()[0]}", flush=True)
            parts[name](given.quick)


def output(quick: bool) -> None:
    """Output and logsumexp against PyTorch's scaled_dot_product_attention."""
    for length in (1024, 2048) if quick else (4096, 8192, 16384):
        for causal in (False, True):
            query, key, value = inputs(length)
            ours = lambda: regard.attend(query, key, value, causal=causal)  # noqa: E731, B023
            theirs = lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)  # noqa: E731, B023
            took = rounds(theirs, ours, 3 if quick else 5)
            rule = ScoreRule(WIDTH**-0.5, mask=masks.causal() if causal else None)
            name = dispatch.compute(query, key, value, rule).kernel  # on some CPUs PyTorch's own: then the ratio is 1
            show(f"{length} {kind(causal)}, {name}", took, None if quick else 0.6, causal)


def short(quick: bool) -> None:
    """The chosen kernel against scaled_dot_product_attention, from 1 token up, `attend` aside."""
    for length in (1, 64, 512) if quick else (1, 2, 8, 32, 128, 256, 384, 512, 640, 704, 768, 896, 1024, 1536, 2048):
        for causal in (False, True):
            query, key, value = inputs(length)
            rule = ScoreRule(WIDTH**-0.5, mask=masks.causal() if causal else None)
            ours = lambda: dispatch.compute(query, key, value, rule)  # noqa: E731, B023
            theirs = lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)  # noqa: E731, B023
            took = rounds(theirs, ours, 300 if length < 300 else 40)
            name = dispatch.compute(query, key, value, rule).kernel
            show(f"{length} {kind(causal)}, {name}", took, 1.05)


def one_sweep(quick: bool) -> None:
    """Output and all statistics in one sweep, against PyTorch's output alone and against our own."""
    for length in (2048,) if quick else (2048, 4096, 8192, 16384):
        for causal in (False, True):
            query, key, value = inputs(length)
            ours = lambda: everything(query, key, value, causal)  # noqa: E731, B023
            theirs = lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)  # noqa: E731, B023
            own = lambda: regard.attend(query, key, value, causal=causal)  # noqa: E731, B023
            count = 3 if quick or length > 8192 else 5
            show(f"{length} {kind(causal)}", rounds(theirs, ours, count), 0.9 if length == 2048 else 0.7, causal)
            *_, ratio = rounds(own, ours, count)
            target = "" if length == 2048 else f", at most 1.35{verdict(ratio, 1.35)}"
            print(f"    against our own output: {ratio:.2f}{target}", flush=True)


def asked_afterwards(quick: bool) -> None:
    """Output, then all statistics asked of its map, against PyTorch's output alone."""
    for length in (2048,) if quick else (4096, 8192, 16384):
        for causal in (False, True):
            query, key, value = inputs(length)
            ours = lambda: afterwards(query, key, value, causal)  # noqa: E731, B023
            theirs = lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)  # noqa: E731, B023
            took = rounds(theirs, ours, 3 if quick else 5)
            show(f"{length} {kind(causal)}", took, 1.2 if length == 8192 else None, causal)


def against_dense(quick: bool) -> None:
    """The same figures against n×n in plain torch; a ratio of a sixth is the target."""
    length = 1024 if quick else 4096
    for causal in (False, True):
        query, key, value = inputs(length)
        ours = lambda: everything(query, key, value, causal)  # noqa: E731, B023
        theirs = lambda: dense(query, key, value, causal)  # noqa: E731, B023
        took = rounds(theirs, ours, 3)
        show(f"{length} {kind(causal)}", took, None if quick else 1 / 6)


def region(quick: bool) -> None:
    """A region of 256 × 256 weights far into a long text, before and after its rows' sums are known."""
    length = 16384 if quick else 131072
    query, key, _ = inputs(length)
    for causal in (False, True):
        rule = ScoreRule(WIDTH**-0.5, mask=masks.causal() if causal else None)
        before, after = [], []
        for head in range(HEADS):
            weights = AttentionMap(query, key, rule, offset=0)
            spot = 0, head, slice(length - 300, length - 44), slice(5000, 5256)
            before.append(seconds(lambda: weights[spot]))  # noqa: B023
            after.extend(seconds(lambda: weights[spot]) for _ in range(9))  # noqa: B023
        for state, times, target in (("before", before, 60.0), ("known", after, 1.0)):
            took = statistics.median(times) * 1e3
            print(f"  {length} {kind(causal)}, {state}: {took:.2f} ms, target {target:.0f} ms{verdict(took, target)}")


def call(quick: bool) -> None:
    """What a call of `attend` costs beside the kernel that it calls, with no recorder open: at most 80 µs."""
    for length in (1, 16, 64):
        for options in ({}, {"causal": True}, {"window": (8, 0), "softcap": 30.0}):
            query, key, value = inputs(length)
            rule = regard.attend(query, key, value, **options).weights.rule
            ours = lambda: regard.attend(query, key, value, **options)  # noqa: E731, B023
            theirs = lambda: dispatch.compute(query, key, value, rule)  # noqa: E731, B023
            took = rounds(theirs, ours, 300 if quick else 2000)
            cost = (took[1] - took[0]) * 1e6
            print(f"  {length} {options or 'plain'}: {cost:.0f} µs, target 80 µs{verdict(cost, 80)}")


def memory(quick: bool, plot: Path | None = None) -> None:
    """Peak memory above inputs and results of attention with all statistics, each length in a fresh process."""
    lengths = (4096, 8192, 16384) if quick else (4096, 8192, 16384, 32768, 65536, 131072)
    found = {}
    for length in lengths:
        heads = 1 if quick else HEADS
        command = [sys.executable, "-m", "benchmarks.attention", "--child", str(length), str(heads)]
        folder = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=True)
        above = found[length] = json.loads(done.stdout)
        target = f", target 300 MiB{verdict(above, 300)}" if length == 65536 else ""
        print(
            f"  {length} × {length} × {heads} heads: {above:.0f} MiB, {above * MIB / length:.0f} bytes a token{target}"
        )
    if plot is not None:
        draw(found, plot)


def draw(found: dict[int, float], file: Path) -> None:
    """Draw memory by length, and the memory that whole matrices would need."""
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.add_subplot()
    lengths = list(found)
    axes.loglog(lengths, list(found.values()), "o-", color="#0072b2", label="regard: output and all statistics")
    matrix = [HEADS * length**2 * 4 / MIB for length in lengths]
    axes.loglog(lengths, matrix, "--", color="#d55e00", label="full weight matrices of all heads, float32")
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths], minor=False)
    axes.minorticks_off()
    axes.set_xlabel("tokens (12 heads of width 64, causal)")
    axes.set_ylabel("MiB above inputs and results")
    axes.set_title("Extra memory of one attention call")
    axes.legend(frameon=False)
    with whole(file) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


def everything(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> object:
    """Output and all figures in one sweep, through `attend`."""
    result = regard.attend(query, key, value, causal=causal, statistics=ALL)
    return result, result.weights.statistics(TOP, (PARTS, PARTS))


def afterwards(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> object:
    """Output, then all figures."""
    result = regard.attend(query, key, value, causal=causal)
    return result, result.weights.statistics(TOP, (PARTS, PARTS))


def dense(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool) -> object:
    """Output and the same figures as anyone would write them: n×n."""
    length = query.shape[2]
    scores = query @ key.mT * WIDTH**-0.5  # (1, H, L, L)
    if causal:
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    i = torch.arange(length)
    cell = length // PARTS
    return (
        weights @ value,
        scores.logsumexp(-1),
        weights.topk(TOP, -1),
        torch.special.entr(weights).sum(-1),
        weights.sum(-2),
        (weights * (i[:, None] - i).abs()).sum(-1),
        weights.unflatten(-1, (PARTS, cell)).mean(-1).unflatten(-2, (PARTS, cell)).mean(-2),
    )


def peak_above_inputs(length: int, heads: int) -> float:
    """MiB of resident memory at the peak of one call with all statistics, above inputs and what it returns."""
    with torch.inference_mode():
        everything(*inputs(1024, 1), causal=True)  # loads and compiles what it needs
        query, key, value = inputs(length, heads)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
        before = resident("VmRSS")
        result, figures = everything(query, key, value, causal=True)  # type: ignore[misc]
        kept = [result.output, result.logsumexp, *(t for t in vars(figures).values() if t is not None)]
        return (resident("VmHWM") - before - sum(t.nbytes for t in kept)) / MIB


def inputs(length: int, heads: int = HEADS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value of normal numbers."""
    generator = torch.Generator().manual_seed(length)
    query, key, value = (torch.randn(1, heads, length, WIDTH, generator=generator) for _ in range(3))
    return query, key, value


def show(name: str, took: tuple[float, float, float], target: float | None, causal: bool | None = None) -> None:
    """One line: both times, their ratio, the target; where causal is given, which share of the peak ours is."""
    against, mine, ratio = took
    wanted = "" if target is None else f", at most {target:.2f}{verdict(ratio, target)}"
    share = ""
    if causal is not None:
        length = int(name.split()[0])
        share = f"; {share_of_peak(4 * HEADS * WIDTH * length**2 * (0.5 if causal else 1.0), mine)}"
    print(f"  {name}: {against * 1e3:.2f} ms, ours {mine * 1e3:.2f} ms, ratio {ratio:.2f}{wanted}{share}", flush=True)


def kind(causal: bool) -> str:
    """The mask in a word."""
    return "causal" if causal else "full"


if __name__ == "__main__":
    main()
