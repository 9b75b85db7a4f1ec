"""Weights kept as they are stored (dtype "auto") against float32 and half precision: memory, time and difference.

python -m benchmarks.stored                        a model of 1.1 billion weights, random, made in a temporary folder
python -m benchmarks.stored --layers 32 --width 4096 --inner 11008 --only auto       of 6.7 billion, 13.5 GB on disk
python -m benchmarks.stored --folder FOLDER        a model folder in half precision
python -m benchmarks.stored --folder FILE.gguf --only float32 --only auto    a quantised model
python -m benchmarks.stored --gguf --only float32 --only auto             a random one of the given shape, in Q4_K

Each dtype is loaded and traced in a process of its own, in turn over the rounds; memory is the process's peak above one
that has imported regard alone, and of the second peak what a trace of the longest text keeps is taken away. Times are
medians of traces after the first, divided by those of float32.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors.torch
import torch
import transformers

LENGTHS = (14, 512)
WRITTEN = 16  # tokens
NAMES = ("load", "loaded", "peak", "14", "512", "written")
DTYPES = ("float32", "auto", "bfloat16")


def main() -> None:
    """Measure a folder, or a random model of the given shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--gguf", action="store_true")
    for name, usual in (("layers", 22), ("width", 2048), ("inner", 5632), ("heads", 32), ("rounds", 3), ("traces", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--only", choices=DTYPES, action="append")
    parser.add_argument("--one", choices=DTYPES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.folder, given.one, given.traces)))
        return
    with tempfile.TemporaryDirectory() as place:
        make = made_gguf if given.gguf else made
        folder = given.folder or make(Path(place), given.layers, given.width, given.inner, given.heads)
        files = [folder] if folder.is_file() else folder.glob("*.safetensors")
        size = sum(each.stat().st_size for each in files)
        print(f"{size / 1e9:.2f} GB of weights, {torch.get_num_threads()} threads, torch {torch.__version__}")
        runs: dict[str, list[Any]] = {dtype: [] for dtype in given.only or DTYPES}
        for _ in range(given.rounds):
            for dtype in runs:
                command = [sys.executable, "-m", "benchmarks.stored", "--folder", str(folder), "--one", dtype]
                command += ["--traces", str(given.traces)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                runs[dtype].append(json.loads(done.stdout.splitlines()[-1]))
        for line in table(runs, size):
            print(line)


def made(folder: Path, layers: int, width: int, inner: int, heads: int) -> Path:
    """A random model of Llama's kind in bfloat16, a file a layer, never whole in memory."""
    config = transformers.LlamaConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads, architectures=["LlamaForCausalLM"], torch_dtype="bfloat16",
    )  # fmt: skip
    config.save_pretrained(folder)
    with torch.device("meta"):
        shapes = {name: each.shape for name, each in transformers.LlamaForCausalLM(config).named_parameters()}
    names: dict[str, str] = {}
    drawn = torch.Generator().manual_seed(0)
    groups: dict[str, dict[str, Any]] = {}
    for name, shape in shapes.items():
        part = name.split(".")[2] if ".layers." in name else "rest"
        groups.setdefault(part, {})[name] = shape
    for part, group in groups.items():
        file = f"part-{part}.safetensors"
        tensors = {
            name: torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=drawn) / shape[-1] ** 0.5
            for name, shape in group.items()
        }
        safetensors.torch.save_file({name: each.bfloat16() for name, each in tensors.items()}, folder / file)
        names |= dict.fromkeys(group, file)
    index = {"metadata": {}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def made_gguf(folder: Path, layers: int, width: int, inner: int, heads: int) -> Path:
    """A random model of Llama's kind as a GGUF file whose matrices are in Q4_K, never whole in memory."""
    import gguf

    file, package = folder / "model.gguf", cast(Any, gguf)
    config = transformers.LlamaConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads,
    )  # fmt: skip
    with torch.device("meta"):
        shapes = {name: tuple(each.shape) for name, each in transformers.LlamaForCausalLM(config).named_parameters()}
    names = package.get_tensor_name_map(package.MODEL_ARCH.LLAMA, layers)
    writer = package.GGUFWriter(file, "llama")
    for add, value in (
        (writer.add_name, "random"), (writer.add_block_count, layers), (writer.add_embedding_length, width),
        (writer.add_feed_forward_length, inner), (writer.add_head_count, heads), (writer.add_head_count_kv, heads),
        (writer.add_layer_norm_rms_eps, 1e-6), (writer.add_vocab_size, config.vocab_size),
        (writer.add_context_length, 2048), (writer.add_rope_freq_base, 10_000.0),
    ):  # fmt: skip
        add(value)
    drawn = np.random.default_rng(0)
    kinds = package.GGMLQuantizationType
    for name, shape in shapes.items():
        stored = shape if len(shape) == 1 else (shape[0], shape[1] // 256 * 144)
        kind, dtype = (kinds.F32, np.float32) if len(shape) == 1 else (kinds.Q4_K, np.uint8)
        size = math.prod(stored) * np.dtype(dtype).itemsize
        known = names.get_name(name.removesuffix(".weight")) + ".weight"
        writer.add_tensor_info(known, stored, np.dtype(dtype), size, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for shape in shapes.values():
        if len(shape) == 1:
            writer.write_tensor_data(np.ones(shape, np.float32))
            continue
        blocks = drawn.integers(0, 256, (shape[0], shape[1] // 256, 144), dtype=np.uint8)
        step = np.float16(
            shape[1] ** -0.5 / 256
        )  # factors are up to 63 and numbers up to 15, least ones in their middle
        blocks[..., :4] = np.array([step, 8 * step], np.float16).view(np.uint8)
        writer.write_tensor_data(blocks.reshape(shape[0], -1))
    writer.close()
    return file


def measured(folder: Path, dtype: str, traces: int) -> dict[str, Any]:
    """Load a model in a dtype, trace it at each length, and tell what that took."""
    from regard.capture.options import CaptureOptions
    from regard.models.load import load
    from regard.models.runner import Sizes

    before = peak()
    started = time.perf_counter()
    model = load(folder, device="cpu", dtype=dtype)
    found: dict[str, Any] = {"load": time.perf_counter() - started, "loaded": peak() - before}
    for length in LENGTHS:
        ids = torch.randint(5, 30_000, (length,), generator=torch.Generator().manual_seed(length)).tolist()
        seconds = []
        for _ in range(traces):
            trace = None  # or two would be held at a time
            started = time.perf_counter()
            trace = model.trace(ids=ids)
            seconds.append(time.perf_counter() - started)
        found[str(length)] = statistics.median(seconds[1:] or seconds)
        found[f"states {length}"] = [float(trace.last_hidden_state[-1, n]) for n in range(0, 64, 8)]
        del trace
    kept = Sizes.of(model.model).trace_bytes(max(LENGTHS), CaptureOptions())
    found["peak"] = peak() - before - kept
    found["written"] = seconds_a_token(model.model)
    return found


def seconds_a_token(model: Any) -> float:
    """What a token takes that transformers' own `generate` writes, behind 64 others."""
    ids, took = torch.arange(5, 69)[None], {}
    for count in (1, 1, 1 + WRITTEN):  # the first compiles what is not compiled yet
        started = time.perf_counter()
        model.generate(ids, min_new_tokens=count, max_new_tokens=count, do_sample=False, pad_token_id=0)
        took[count] = time.perf_counter() - started
    return (took[1 + WRITTEN] - took[1]) / WRITTEN


def peak() -> int:
    """The most bytes that this process has had in memory at a time."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def table(runs: dict[str, list[Any]], size: int) -> list[str]:
    """A row a dtype: seconds to load, memory of the file's size, times over float32's, largest difference of states."""
    rows = [
        "| dtype | load, s | loaded / file | peak of a trace / file | 14 tokens, s | 512 tokens, s "
        "| a token written, ms | off float32 |",
        "|" + "---|" * 8,
    ]
    wide = runs.get("float32")
    for dtype, all_of in runs.items():
        middle = {name: statistics.median(each[name] for each in all_of) for name in NAMES}
        cells = [dtype, f"{middle['load']:.1f}", f"{middle['loaded'] / size:.2f}", f"{middle['peak'] / size:.2f}"]
        for length in (*map(str, LENGTHS), "written"):
            ratio = (
                ""
                if wide is None
                else f" ({statistics.median(a[length] / b[length] for a, b in zip(all_of, wide, strict=True)):.2f})"
            )
            cells.append(
                f"{1e3 * middle[length]:.1f}{ratio}" if length == "written" else f"{middle[length]:.2f}{ratio}"
            )
        off = (
            0.0
            if wide is None
            else max(
                abs(a - b)
                for n in LENGTHS
                for a, b in zip(all_of[0][f"states {n}"], wide[0][f"states {n}"], strict=True)
            )
        )
        cells.append("" if wide is None else f"{off:.0e}")
        rows.append("| " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    main()
