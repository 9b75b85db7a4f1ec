"""A tool in a process of its own, which does what it is asked, a line of JSON each: python -m benchmarks.compare.worker

It answers with a line of JSON on its own standard output; what libraries print goes to standard error.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks.compare import long, reference
from benchmarks.compare.tools import TOOLS, Weights, version
from benchmarks.measure import MIB, resident

WARM = 16  # tokens of a run that loads and compiles what the first run needs


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    opened: dict[str, Weights] = {}
    for line in sys.stdin:
        asked, answer = json.loads(line), {}
        signal.setitimer(signal.ITIMER_PROF, asked.get("limit", 0))  # its signal ends the process
        try:
            answer = done(asked, opened, answer)
        except Exception as error:  # of whatever kind: it is what the table says
            answer["failed"] = " ".join(str(error).split())[:300] or type(error).__name__
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def done(asked: dict[str, Any], opened: dict[str, Weights], answer: dict[str, Any]) -> dict[str, Any]:
    """Do one thing: open a tool, run it, write the reference, or see what regard shows of a long text."""
    if asked["do"] == "reference":
        reference.write(asked["folder"], asked["ids"], Path(asked["file"]))
    elif asked["do"] == "addresses":  # of the whole process, in bytes
        resource.setrlimit(resource.RLIMIT_AS, (asked["bytes"], asked["bytes"]))
    elif asked["do"] == "looks":
        answer |= long.looks(asked["folder"], asked["ids"])
    elif asked["do"] == "open":
        answer["version"] = version(TOOLS[asked["tool"]])
        if answer["version"] is None:
            answer["failed"] = "not installed"
            return answer
        opened["tool"] = TOOLS[asked["tool"]].opened(asked["folder"])
        opened["tool"](torch.arange(3, 3 + WARM)[None], [0])
    else:
        answer |= run(opened["tool"], torch.tensor([asked["ids"]]), asked["layers"], asked.get("file"))
    return answer


def run(weights: Weights, ids: torch.Tensor, layers: list[int], truth: str | None) -> dict[str, float]:
    """Run a tool: its processor seconds, the peak of memory above what there was, in MiB, the error of one layer."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier runs freed goes back, so that it counts again
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = resident("VmRSS"), time.process_time()
    found = weights(ids, layers)
    answer = {"seconds": time.process_time() - start, "mib": (resident("VmHWM") - before) / MIB}
    return answer | ({"error": reference.apart(found[0], Path(truth))} if truth else {})


if __name__ == "__main__":
    main()
