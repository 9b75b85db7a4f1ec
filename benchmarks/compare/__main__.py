"""How regard compares with other tools that show attention weights, measured: python -m benchmarks.compare [PART ...]

    PART            encoder, decoder, files, long, or several; by default all: out/compare
    --python FILE   the interpreter that has the tools (and regard's own dependencies); by default this one
    --quick         512 tokens alone, one round
    --write         keep what was measured in benchmarks/compare/measured.json and write the tables of the pages

Each tool works in a process of its own, on one thread. Errors are the largest against a float64 pass; times are the
thread's processor seconds, medians of rounds in which all take turns, and ratios of one round to eager attention in it;
memory is the peak above what the process had before. A tool that is not installed is said to be so. regard goes without
them: install them, without their dependencies where those disagree, into an environment of their own:

    pip install transformer-lens==4.3.0 interp-engine==1.14.2 bertviz==1.4.1 nnsight==0.7.0 torchlens==2.36.1
    pip install --no-deps attnread==0.1.2
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.compare import files, long, page
from benchmarks.compare.models import MODELS
from benchmarks.compare.process import Process
from benchmarks.compare.tools import BASE, TOOLS
from benchmarks.measure import machine

OUT = Path(__file__).parents[2] / "out" / "compare"
ROUNDS = {512: 5, 4096: 2}  # the first, which measures memory, is one of them
LIMIT = 60  # processor seconds that one job may take
LONG_LIMIT = 30  # and one try of 100,000 tokens
SLOW = 30  # processor seconds from which on one run has to do


def main() -> None:
    """Measure parts, or write the pages."""
    parts: dict[str, Callable[[str, bool], dict[str, Any]]] = {
        **{kind: partial(of_a_model, kind) for kind in MODELS}, "files": of_files, "long": of_a_long_text
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; by default all")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the interpreter that has the tools")
    parser.add_argument("--quick", action="store_true", help="512 tokens alone, one round")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help="where the parts go: out/compare")
    parser.add_argument("--write", action="store_true", help="write the pages from what was measured")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in parts]
    if unknown or (given.write and given.parts):
        parser.error(f"{unknown[0]} is none of {', '.join(parts)}" if unknown else "--write takes no parts")
    if given.write:
        there = [name for name in parts if (given.out / f"{name}.json").exists()]
        page.keep({name: json.loads((given.out / f"{name}.json").read_text("utf-8")) for name in there})
        return
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.parts or parts:
        found = {
            "date": date.today().isoformat(), "machine": machine().split(" (")[0],
            "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
            **parts[name](given.python, given.quick),
        }  # fmt: skip
        (given.out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def of_a_model(kind: str, python: str, quick: bool) -> dict[str, Any]:
    """Every tool on a model and each of its texts."""
    with tempfile.TemporaryDirectory() as folder:
        about = MODELS[kind](folder)
        texts = {length: ids for length, ids in about.pop("texts").items() if length == 512 or not quick}
        rows: dict[str, Any] = {name: {"version": None} for name in TOOLS}
        ready: dict[str, Process] = {}
        try:
            for name in TOOLS:
                process = Process(python)
                rows[name], failed = process.opened(name, folder)
                told(kind, name, rows[name])
                if failed:
                    process.close()
                else:
                    ready[name] = process
            for length, ids in texts.items():
                on_a_text(folder, ids, about["layers"], ready, rows, 1 if quick else ROUNDS[length])
        finally:
            for process in ready.values():
                process.close()
        return {**about, "lengths": list(texts), "rows": rows, "limit": LIMIT}


def on_a_text(
    folder: str, ids: list[int], layers: int, ready: dict[str, Process], rows: dict[str, Any], rounds: int
) -> None:
    """Run the tools that are ready on one text: the last layer and its error, then all layers; into each one's row."""
    jobs, truth = {"layer": [layers - 1], "all": list(range(layers))}, f"{folder}/truth.pt"
    with Process(sys.executable) as process:
        process.need(do="reference", folder=folder, ids=ids, file=truth)
    for name in list(ready):
        row = rows[name][str(len(ids))] = {}
        for job in jobs:
            asked = {"file": truth} if job == "layer" else {}
            row[job] = ready[name].ask(do="run", ids=ids, layers=jobs[job], limit=LIMIT, **asked)
            told(name, len(ids), job, row[job])
            if "stopped" in row[job]:
                ready.pop(name).close()
                break
    for job in jobs:
        first = {name: rows[name][str(len(ids))][job].get("seconds", SLOW) for name in ready}
        by = [name for name, took in first.items() if took < SLOW]
        times = [first] + [
            {name: ready[name].need(do="run", ids=ids, layers=jobs[job], limit=LIMIT)["seconds"] for name in by}
            for _ in range(rounds - 1)
        ]
        for name in by:
            row = rows[name][str(len(ids))][job]
            row["seconds"], row["rounds"] = statistics.median(each[name] for each in times), rounds
            row["ratio"] = statistics.median(each[name] / each[BASE] for each in times)
            told(name, len(ids), job, row)
        for name, row in rows.items():  # of which one run had to do
            alone = row.get(str(len(ids)), {}).get(job, {})
            if "seconds" in alone and name not in by:
                alone |= {"rounds": 1, "ratio": alone["seconds"] / rows[BASE][str(len(ids))][job]["seconds"]}
    Path(truth).unlink()


def of_files(python: str, quick: bool) -> dict[str, Any]:
    """The sizes of BertViz's file and regard's, of the encoder."""
    with tempfile.TemporaryDirectory() as folder:
        about = MODELS["encoder"](folder)
        return {**about, "texts": files.sizes(python, folder, [128] if quick else [128, 512])}


def of_a_long_text(python: str, quick: bool) -> dict[str, Any]:
    """What regard shows of 100,000 tokens, and where every other tool ends."""
    ids = long.ids(long.LENGTH // (32 if quick else 1))
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        long.write(folder)
        with Process(sys.executable) as process:
            seen = process.need(do="looks", folder=folder, ids=ids)
            told("regard", seen)
        for name in TOOLS:
            if name.startswith("regard"):
                continue
            with Process(python) as process:
                rows[name], failed = process.opened(name, folder)
                if not failed:
                    process.need(do="addresses", bytes=long.LARGEST)
                    rows[name] |= process.ask(do="run", ids=ids, layers=[0], limit=LONG_LIMIT)
                told(name, rows[name])
    return {"length": len(ids), "addresses": long.LARGEST, "limit": LONG_LIMIT, "seen": seen, "rows": rows}


def told(*what: Any) -> None:
    """Say on standard error what was just measured."""
    print(*what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
