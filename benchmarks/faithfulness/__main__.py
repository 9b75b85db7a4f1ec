"""Which explanation is right? Methods that explain, held against what removing each word of real texts truly does.

python -m benchmarks.faithfulness [MODEL ...]    measures MiniLM, SmolLM2, opus-mt, or those named: out/faithfulness
python -m benchmarks.faithfulness --write        writes docs/faithfulness.md from what is there

The texts are sentences of Moby Dick in REGARD_SHARED; SmolLM2's and opus-mt's folders are named by REGARD_SMOLLM2 and
REGARD_OPUS_MT. One thread is enough: 10 to 30 minutes a model.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

import regard
from benchmarks.faithfulness import page, texts
from benchmarks.faithfulness.cases import CASES
from benchmarks.faithfulness.measure import look
from benchmarks.measure import machine
from regard.files import whole
from regard.models.model import Model

OUT = Path(__file__).parent.parent.parent / "out" / "faithfulness"
FOLDERS = {"SmolLM2": "REGARD_SMOLLM2", "opus-mt": "REGARD_OPUS_MT"}
SAVED_EVERY = 10  # texts


def main() -> None:
    """Measure models, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(CASES)}; by default all")
    parser.add_argument("--texts", type=int, default=100, help="how many texts of each (100)")
    parser.add_argument("--write", action="store_true", help="write docs/faithfulness.md from what was measured")
    given = parser.parse_args()
    unknown = [name for name in given.models if name not in CASES]
    if unknown or (given.write and given.models):
        parser.error(f"{unknown} are none of {', '.join(CASES)}" if unknown else "--write takes no models")
    if given.write:
        page.write([json.loads((OUT / f"{name}.json").read_text(encoding="utf-8")) for name in CASES])
        return
    for name in given.models or CASES:
        measure(name, given.texts)


def measure(name: str, count: int) -> None:
    """Measure so many texts of one model, and write what was found."""
    model = opened(name)
    book = Path(os.environ["REGARD_SHARED"]) / "data" / "moby_dick" / "moby_dick.txt"
    pool, started = texts.sentences(texts.read(book)), time.perf_counter()
    found, before = earlier(name, count)
    for number, case in enumerate(CASES[name](model, pool, texts.SEED), 1):
        if number <= len(found):
            continue
        found.append(look(case))
        took, outcome = before + time.perf_counter() - started, found[-1]["outcome"]
        print(f"{took:.0f} s, {name} {number}: {outcome}, {len(case.sources)} sources", file=sys.stderr, flush=True)
        if number in (count, *range(0, count, SAVED_EVERY)):
            save(name, model, found, len(pool), took)
        if number == count:
            return
    raise SystemExit(f"{name}: {len(found)} texts are all that the book has, {count} are wanted")


def earlier(name: str, count: int) -> tuple[list[dict[str, Any]], float]:
    """What a run that was ended early has measured, to go on from, and its seconds; nothing of one that was not."""
    file = OUT / f"{name}.json"
    data = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"texts": [], "seconds": 0.0, "seed": None}
    )
    goes_on = data["seed"] == texts.SEED and len(data["texts"]) < count
    return (data["texts"], data["seconds"]) if goes_on else ([], 0.0)


def opened(name: str) -> Model:
    """The model, in float32 on the CPU."""
    if name not in FOLDERS:
        return regard.load(device="cpu")
    folder = os.environ.get(FOLDERS[name], "")
    if not folder:
        raise SystemExit(f"{name}: {FOLDERS[name]} names no folder")
    return regard.load(folder, device="cpu")


def save(name: str, model: Model, found: list[dict[str, Any]], pool: int, seconds: float) -> None:
    """Write what was measured so far."""
    OUT.mkdir(parents=True, exist_ok=True)
    data = {
        "model": name,
        "name": model.name,
        "machine": machine(),
        "torch": torch.__version__,
        "seed": texts.SEED,
        "sentences": pool,
        "seconds": seconds,
        "texts": found,
    }
    with whole(OUT / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
