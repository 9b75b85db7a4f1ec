"""What it costs to trace what a model writes, on this machine's CPU: python -m benchmarks.generate

    python -m benchmarks.generate            # SmolLM2-135M: REGARD_SMOLLM2 names the folder with its GGUF file
    python -m benchmarks.generate --quick    # fewer tokens and rounds

The same greedy text three times in turns: by transformers alone, with a trace of it, and with received, entropy and the
8 largest weights of every row of every layer and head. Ratios of a round, medians of the rounds.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch

import regard
from benchmarks.measure import machine, seconds, verdict

PROMPT, NEW = 256, 64
WATCHED = regard.Statistics(top=8, pooled=None, distance=False)
START = "The history of the town begins at the river, where a bridge was built before there was a road. "


def main() -> None:
    """Print what a token costs, and what the trace adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tokens and rounds")
    quick = parser.parse_args().quick
    folder = os.environ.get("REGARD_SMOLLM2")
    if not folder:
        sys.exit("benchmarks.generate: REGARD_SMOLLM2 names no folder with SmolLM2's GGUF file")
    print(machine())
    model = regard.load(folder, device="cpu")
    ids = model.tokenizer(START * 40)["input_ids"][: 64 if quick else PROMPT]
    new, count = (16, 3) if quick else (NEW, 7)
    calls: dict[str, Callable[[], Any]] = {
        "transformers alone": lambda: alone(model, ids, new),
        "traced": lambda: model.generate(ids=ids, max_new_tokens=new, min_new_tokens=new),
        "traced, with statistics": lambda: model.generate(
            ids=ids, max_new_tokens=new, min_new_tokens=new, statistics=WATCHED
        ),
    }
    written = {name: call() for name, call in calls.items()}  # loads what it needs
    assert list(written["traced"].ids) == written["transformers alone"], "the texts differ"
    took = {name: [] for name in calls}  # type: dict[str, list[float]]
    for _ in range(count):
        for name, call in calls.items():
            took[name].append(seconds(call))
    print(f"  {len(ids)} tokens read, {new} written")
    for name, times in took.items():
        print(f"  {name}: {statistics.median(times) / new * 1e3:.1f} ms a token")
    plain, traced, watched = took.values()
    above = statistics.median(b / a for a, b in zip(plain, traced, strict=True))
    more = statistics.median(b / a for a, b in zip(traced, watched, strict=True))
    told = f"{more:.3f} × traced, at most 1.05{verdict(more, 1.05)}"
    print(f"  tracing: {above:.2f} × transformers alone; statistics: {told}")


def alone(model: Any, ids: list[int], new: int) -> list[int]:
    """Write with transformers' own `generate`; returns all ids."""
    with torch.no_grad():
        given = torch.tensor([ids])
        options = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False}
        written = model.model.generate(given, attention_mask=torch.ones_like(given), **options)
    return written[0].tolist()


if __name__ == "__main__":
    main()
