"""What it takes to save and open a large capture, memory first: python -m benchmarks.trace_files

Each step runs in a process of its own. "above the trace" is the largest amount of memory while saving less what the
trace itself took; "resident" is what an opening process holds more than before, pages of the mapped file included.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import regard
from benchmarks.measure import machine
from regard.attention.attention_map import AttentionMap
from regard.attention.scores import ScoreRule
from regard.text.tokens import Token
from regard.trace.status import Status
from regard.trace.trace import Trace

HEADS, WIDTH = 16, 64
MIB = 1 << 20


def main() -> None:
    """Print every step's figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--child", nargs=2, metavar=("STEP", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        step, file = given.child
        STEPS[step](Path(file), given.tokens, given.layers)
        return
    if not Path("/proc/self/clear_refs").exists():
        raise SystemExit("benchmarks.trace_files reads memory from /proc, as Linux has it")
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            size = ["--tokens", str(given.tokens), "--layers", str(given.layers)]
            command = [
                sys.executable,
                "-m",
                "benchmarks.trace_files",
                *size,
                "--child",
                step,
                f"{folder}/a.safetensors",
            ]
            subprocess.run(command, check=True)


def save_as_it_is(file: Path, tokens: int, layers: int) -> None:
    """Everything, in its own dtype."""
    _save("save", file, tokens, layers)


def save_narrower(file: Path, tokens: int, layers: int) -> None:
    """Everything as bfloat16, which is measured first."""
    _save("save, dtype=bfloat16", file.with_name("narrow.safetensors"), tokens, layers, dtype=torch.bfloat16)


def save_some(file: Path, tokens: int, layers: int) -> None:
    """One layer."""
    _save("save, layers=[0]", file.with_name("some.safetensors"), tokens, layers, layers=[0])


def open_it(file: Path, tokens: int, layers: int) -> None:
    """Open without and with the checksum, and look at a layer."""
    for verify in (False, True):
        start = _memory("VmRSS")
        began = time.perf_counter()
        trace = regard.open(file, verify=verify)
        took = time.perf_counter() - began
        held = f"resident {_memory('VmRSS') - start} MiB of {file.stat().st_size // MIB}"
        print(f"open, verify={verify}: {1000 * took:.0f} ms, {held}")
        began = time.perf_counter()
        rows = trace.attention[layers // 2][:, -4:]
        print(f"4 rows of one layer {tuple(rows.shape)}: {1000 * (time.perf_counter() - began):.0f} ms")


def _save(name: str, file: Path, tokens: int, count: int, **choice: object) -> None:
    trace, largest = made(tokens, count)
    made(64, 1)[0].save(file, **choice)  # type: ignore[arg-type]  # libraries take memory of their own at first use
    Path("/proc/self/clear_refs").write_text("5")  # the largest amount so far is forgotten
    start = _memory("VmRSS")
    began = time.perf_counter()
    trace.save(file, **choice)  # type: ignore[arg-type]
    took = time.perf_counter() - began
    above = _memory("VmHWM") - start
    size = file.stat().st_size // MIB
    print(f"{name}: {took:.1f} s, file {size} MiB, {above} MiB above the trace; its largest tensor is {largest} MiB")


def made(tokens: int, layers: int) -> tuple[Trace, int]:
    """A trace of random numbers that lie in memory as a model's do, and its largest tensor's MiB."""
    random = torch.Generator().manual_seed(0)

    def heads() -> torch.Tensor:
        return torch.randn(1, tokens, HEADS, WIDTH, generator=random).transpose(1, 2)

    maps = tuple(AttentionMap(heads(), heads(), ScoreRule(WIDTH**-0.5), offset=0, ndim=3) for _ in range(layers))
    states = tuple(torch.randn(tokens, HEADS * WIDTH, generator=random) for _ in range(layers + 1))
    trace = Trace(
        text="x" * tokens,
        tokens=tuple(Token(n, "x", n, n + 1, n, False) for n in range(tokens)),
        token_embeddings=None,
        position_embeddings=None,
        segment=None,
        input=None,
        hidden_states=states,
        last_hidden_state=states[-1],
        logits=None,
        attention=maps,
        values=tuple(heads()[0] for _ in range(layers)),
        status=Status("made", (), "cpu", "float32", None, 0, None),
    )
    return trace, states[0].nbytes // MIB


def _memory(line: str) -> int:
    """A line of this process's status, in MiB."""
    for each in Path("/proc/self/status").read_text().splitlines():
        if each.startswith(f"{line}:"):
            return int(each.split()[1]) >> 10
    raise KeyError(line)


STEPS = {"save": save_as_it_is, "narrow": save_narrower, "some": save_some, "open": open_it}

if __name__ == "__main__":
    main()
