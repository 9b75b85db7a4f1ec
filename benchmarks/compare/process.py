"""A worker as its parent sees it: asked by a line of JSON, answering by one."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Process:
    """A process for one tool. What it is asked it answers with what it found, {"failed": why} or {"stopped": limit}."""

    def __init__(self, python: str) -> None:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.compare.worker"], cwd=ROOT, env={**os.environ, **OFFLINE, "PYTHONPATH": paths},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
        )  # fmt: skip

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Have one thing done; `limit` is the processor seconds after which the process ends itself."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        return {"stopped": asked["limit"]} if code == -signal.SIGPROF else {"failed": f"its process ended with {code}"}

    def need(self, **asked: Any) -> dict[str, Any]:
        """Have one thing done that has to succeed."""
        answer = self.ask(**asked)
        if "failed" in answer or "stopped" in answer:
            raise RuntimeError(f"{asked['do']}: {answer}")
        return answer

    def opened(self, tool: str, folder: str) -> tuple[dict[str, Any], bool]:
        """Open a tool on a folder: its version, and why it cannot be opened; whether that is so."""
        answer = self.ask(do="open", tool=tool, folder=folder)
        return answer, "failed" in answer

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()
