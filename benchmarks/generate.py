"""What it costs to trace what a model writes, on this machine's CPU: python -m benchmarks.generate

    python -m benchmarks.generate            # SmolLM2-135M: REGARD_SMOLLM2 names the folder with its GGUF file
    python -m benchmarks.generate --quick    # fewer tokens and rounds
    python -m benchmarks.generate --processor --tokens 128 12

The same greedy text three times in turns: by transformers alone, with a trace of it, and with received, entropy and the
8 largest weights of every row of every layer and head. Ratios of a round, medians of the rounds.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import regard
from benchmarks import measure
from benchmarks.measure import machine, seconds, verdict

PROMPT, NEW = 256, 64
WATCHED = regard.Statistics(top=8, pooled=None, distance=False)
START = "The history of the town begins at the river, where a bridge was built before there was a road. "


def main() -> None:
    """Print what a token costs, and what the trace adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tokens and rounds")
    parser.add_argument("--tokens", nargs=2, type=int, metavar=("READ", "NEW"), help="how many are read and written")
    parser.add_argument("--processor", action="store_true", help="time of the processor, where others use the machine")
    given = parser.parse_args()
    quick = given.quick
    if given.processor:
        measure.clock = time.process_time
    folder = os.environ.get("REGARD_SMOLLM2")
    if not folder:
        sys.exit("benchmarks.generate: REGARD_SMOLLM2 names no folder with SmolLM2's GGUF file")
    print(machine())
    model = regard.load(folder, device="cpu")
    read, new = given.tokens or ((64, 16) if quick else (PROMPT, NEW))
    ids, count = model.tokenizer(START * 40)["input_ids"][:read], 3 if quick else 7
    calls: dict[str, Callable[[], Any]] = {
        "transformers alone": lambda: alone(model, ids, new),
        "a plain pass over the finished text": lambda: plain(model, len(ids) + new),
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
    against, *others = took.values()
    once, traced, watched = (statistics.median(b / a for a, b in zip(against, own, strict=True)) for own in others)
    told = f"with statistics {watched:.2f} ×, at most 1.35{verdict(watched, 1.35)}; the plain pass {once:.2f} ×"
    print(f"  tracing: {traced:.2f} × transformers alone; {told}")


def plain(model: Any, count: int) -> object:
    """Run the model once over so many tokens."""
    with torch.no_grad():
        return model.model(torch.arange(count)[None], use_cache=False)


def alone(model: Any, ids: list[int], new: int) -> list[int]:
    """Write with transformers' own `generate`; returns all ids."""
    with torch.no_grad():
        given = torch.tensor([ids])
        options = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False}
        written = model.model.generate(given, attention_mask=torch.ones_like(given), **options)
    return written[0].tolist()


if __name__ == "__main__":
    main()
