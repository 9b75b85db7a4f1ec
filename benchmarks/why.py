"""What explaining a word costs, as ratios inside one run: python -m benchmarks.why

"bank" in a sentence of 14 tokens through MiniLM: 14 tokens and 72 heads behind it, each measured by taking it away. The
runs go in batches and reuse the layers below the first ablated one (`model.ablated`); beside them the same runs one
after another, as `model.trace(text, interventions=...)` makes them. Medians of rounds in which both sides take turns.
"""

import argparse
import statistics

import regard
from benchmarks.measure import machine, seconds, verdict
from regard.capture.interventions import names as interventions
from regard.explain.causes.ablation_effect import removal

TEXT, WORD = "Write a poem about a man fishing on a river bank.", "bank"
TARGET = 0.8  # seconds


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(machine())
    model = regard.load(device="cpu")
    trace = model.trace(TEXT)
    (word,) = trace.word(WORD)
    tokens = [removal(trace, n) for n in range(len(trace.tokens))]
    layers = enumerate(trace.attention)
    sets = tokens + [
        [interventions.ablate(interventions.head(n, h))] for n, weights in layers for h in range(len(weights))
    ]

    def together() -> object:
        return regard.why(model, trace, word)

    def alone() -> object:
        return [model.trace(TEXT, interventions=each) for each in sets]

    together(), alone()
    times = [(seconds(together), seconds(alone)) for _ in range(rounds)]
    mine, theirs = (statistics.median(side) for side in zip(*times, strict=True))
    ratio = statistics.median(theirs / mine for mine, theirs in times)
    print(f"  why: {mine:.2f} s, at most {TARGET:.1f}{verdict(mine, TARGET)} (fastest {min(times)[0]:.2f})")
    print(f"  its {len(sets)} ablations one after another: {theirs:.2f} s, {ratio:.1f} times as long", flush=True)


if __name__ == "__main__":
    main()
