"""What a trace costs beside the model's own forward pass, as ratios inside one run: python -m benchmarks.trace

Both sides take turns and at being first; ratios are medians of the rounds, and behind them stands the ratio of both
sides' fastest rounds, which a busy machine disturbs less. Forward is the transformers model alone, attention by
PyTorch's scaled_dot_product_attention, on token ids that are ready, its output thrown away. A trace is `model.trace`
from the texts: tokens, the forward pass, the comparison with the family's own attention, everything taken apart by
text. Every round has other texts. SmolLM2 is read from the folder that REGARD_SMOLLM2 names.
"""

import argparse
import copy
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import transformers

import regard
from benchmarks import measure
from benchmarks.ablations import turns
from benchmarks.measure import MIB, machine, resident, seconds, verdict
from regard.explain.causes.contributions import contributions
from regard.questions.see.answer import see as see_traces
from regard.text.tokens import encode_all
from regard.views.save_page import put_together

WORDS, TEXTS = 254, 8  # of MiniLM's texts: 256 tokens with the special ones
LONG = 2048  # tokens of SmolLM2's text
SENTENCES = [
    "Write a poem about a man fishing on a river bank.",
    "Write a poem about a man withdrawing money from a bank.",
]
GPT2 = 4096  # tokens of the model of GPT-2's size
KEPT = (0, 1, 1023, 2048, 4095)  # rows of all its heads and layers that are held against eager's


def main() -> None:
    """Print the figures of the parts that were asked for."""
    parts = {
        "minilm": minilm,
        "short": short,
        "own": own,
        "dense": dense,
        "see": see,
        "smollm2": smollm2,
        "eager": eager,
        "memory": memory,
        "explain": explain,
        "ablations": ablations,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}; by default all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds")
    parser.add_argument("--threads", type=int, help="torch's threads, by default as many as it takes")
    parser.add_argument("--processor", action="store_true", help="time of the processor, where others use the machine")
    parser.add_argument("--child", nargs=3, metavar=("KIND", "LENGTH", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child[0], int(given.child[1]), Path(given.child[2]))))
        return
    if given.threads:
        torch.set_num_threads(given.threads)
    if given.processor:
        measure.clock = time.process_time
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]!r} is no part; there are {', '.join(parts)}")
    print(machine())
    for name in given.parts or parts:
        print(f"\n{name}: {(parts[name].__doc__ or '').splitlines()[0]}", flush=True)
        parts[name](given.quick)


def minilm(quick: bool) -> None:
    """MiniLM, 8 texts of 256 tokens: a trace against the forward pass."""
    against_forward(regard.load(device="cpu"), TEXTS, WORDS, 10 if quick else 60)


def smollm2(quick: bool) -> None:
    """SmolLM2-135M, one text of 2048 tokens: a trace against the forward pass."""
    folder = os.environ.get("REGARD_SMOLLM2")
    if not folder:
        print("  left out: REGARD_SMOLLM2 names no folder")
        return
    against_forward(regard.load(folder, device="cpu"), 1, 512 if quick else LONG, 3 if quick else 9)


def short(quick: bool) -> None:
    """MiniLM, two sentences of 14 tokens: a trace against the forward pass, tokenising on both sides."""
    model = regard.load(device="cpu")

    def plain() -> object:
        with torch.no_grad():
            return model.model(**model.tokenizer(SENTENCES, return_tensors="pt", padding=True))

    show("trace", turns(plain, lambda: model.trace(SENTENCES), 20 if quick else 200), 1.5)


def own(quick: bool) -> None:
    """MiniLM on our own Transformer, two sentences of 14 tokens: a trace against the forward pass, both tokenising."""
    model = regard.load(device="cpu")
    ours, tokenizer = model._model, model._tokenizer  # model.model would put that of transformers in its place

    def plain() -> object:
        ids = torch.tensor([encoded.ids for encoded in encode_all(tokenizer, SENTENCES)])
        with torch.inference_mode():
            return ours(input_ids=ids)

    show("trace", turns(plain, lambda: model.trace(SENTENCES), 20 if quick else 200), 1.25)


def dense(quick: bool) -> None:
    """MiniLM, one text of 512 tokens: a trace and all weights written out, against the forward pass."""
    model = regard.load(device="cpu")
    eager = copy.deepcopy(model.model)
    eager.set_attn_implementation("eager")
    (text,) = random_texts(model.tokenizer, 1, 510, 0)
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    plain = partial(forward, model.model, ids, False)
    kinds: dict[str, tuple[Callable[[], object], float | None]] = {
        "eager with output_attentions": (partial(forward, eager, ids, True), None),
        "trace": (lambda: model.trace(text), None),
        "trace, dense()": (lambda: [w.dense() for w in model.trace(text).attention], None),
        "trace, dense(dtype=torch.float32)": (
            lambda: [w.dense(dtype=torch.float32) for w in model.trace(text).attention],
            1.4,
        ),
    }
    for name, (call, target) in kinds.items():
        show(name, turns(plain, call, 5 if quick else 30), target)


def see(quick: bool) -> None:
    """MiniLM: `see` and the page of traces, compared with making the traces."""
    model = regard.load(device="cpu")
    (long,), short = random_texts(model.tokenizer, 1, 480, 0), random_texts(model.tokenizer, 25, 78, 1)
    followed = " ".join(f"{part} bank" for part in random_texts(model.tokenizer, 20, 20, 2))
    parts: list[tuple[str, list[str], Callable[[Any], object]]] = [
        ("480 words", [long], see_traces),
        ("25 texts of 78", short, see_traces),
        ("100 texts of 18", random_texts(model.tokenizer, 100, 18, 3), see_traces),
        ("a word 20 times", [followed], lambda traces: see_traces(traces, "bank")),
        ("page of 25 texts of 78", short, put_together),
    ]
    for name, texts, look in parts:
        traces = model.trace(texts)
        show(name, turns(partial(model.trace, texts), partial(look, traces), 3 if quick else 15), None)


def against_forward(model: Any, texts: int, words: int, count: int) -> None:
    """A trace against the forward pass."""
    batches = [random_texts(model.tokenizer, texts, words, round_) for round_ in range(count + 1)]
    encoded = [model.tokenizer(batch, return_tensors="pt") for batch in batches]
    for batch in batches:  # each id is spelled once a process; texts of random words would meet new ones every time
        encode_all(model.tokenizer, batch)
    shape = tuple(encoded[0]["input_ids"].shape)
    print(f"  {shape[0]} × {shape[1]} tokens")
    at = {"plain": -1, "trace": -1}

    def plain() -> object:
        at["plain"] += 1
        with torch.no_grad():
            return model.model(**encoded[at["plain"] % len(encoded)], use_cache=False)

    def trace() -> object:
        at["trace"] += 1
        return model.trace(batches[at["trace"] % len(batches)])

    show("trace", turns(plain, trace, count), 1.10)


def eager(quick: bool) -> None:
    """GPT-2's size, random weights: a trace against eager attention with output_attentions, each in fresh processes."""
    length = 1024 if quick else GPT2
    found: dict[str, list[dict[str, float]]] = {"trace": [], "trace without blocks": [], "eager": [], "sdpa": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1 if quick else 3):
            for kind, results in found.items():
                results.append(run_child(kind, length, Path(folder) / kind))
        rows = {kind: safetensors.torch.load_file(Path(folder) / kind) for kind in ("trace", "eager")}
    middle = {kind: median(results) for kind, results in found.items()}
    for kind, took in middle.items():
        print(f"  {length} tokens, {kind}: {took['seconds']:.2f} s, {took['peak']:.0f} MiB at its peak above the model")
    ratios = [e["seconds"] / t["seconds"] for e, t in zip(found["eager"], found["trace"], strict=True)]
    faster, less = sorted(ratios)[len(ratios) // 2], middle["eager"]["peak"] / middle["trace"]["peak"]
    apart = max(float((rows["trace"][name] - rows["eager"][name]).abs().max()) for name in rows["eager"])
    print(f"  {faster:.1f} × faster, at least 4{verdict(4, faster)}; {less:.1f} × less memory, at least 10", end="")
    print(f"{verdict(10, less)}; weights within {apart:.1e}, at most 1e-5{verdict(apart, 1e-5)}")


def memory(quick: bool) -> None:
    """Peak memory of a trace above the forward pass's, beside what it keeps (GPT-2's size, fresh processes)."""
    length = 1024 if quick else GPT2
    with tempfile.TemporaryDirectory() as folder:
        peaks = {kind: run_child(kind, length, Path(folder) / kind) for kind in ("sdpa", "trace")}
    above = peaks["trace"]["peak"] - peaks["sdpa"]["peak"]
    kept = {name: peaks["trace"][name] for name in ("query, key, value", "hidden_states", "attention_outputs")}
    told = ", ".join(f"{name} {size:.0f}" for name, size in kept.items())
    print(f"  {length} tokens: {above:.0f} MiB above the forward pass; it keeps {sum(kept.values()):.0f} ({told})")


def explain(quick: bool) -> None:
    """Contributions to one word, all layers of MiniLM, 256 tokens: less than 50 ms."""
    model = regard.load(device="cpu")
    times = []
    for number in range(5 if quick else 30):
        (text,) = random_texts(model.tokenizer, 1, WORDS, number)
        trace = model.trace(text)
        word = trace.word(text.split()[100])[0]
        times.append(seconds(lambda: [contributions(trace, word, layer) for layer in range(6)]))  # noqa: B023
    took = sorted(times)[len(times) // 2] * 1e3
    print(f"  {took:.1f} ms, first {times[0] * 1e3:.1f} ms, at most 50 ms{verdict(took, 50)}")


def ablations(quick: bool) -> None:
    """A trace with a cut against one without, MiniLM, 8 texts of 256 tokens."""
    model = regard.load(device="cpu")
    texts = random_texts(model.tokenizer, TEXTS, WORDS, 0)
    kinds: list[tuple[str, list[Any], float]] = [
        ("a head", [regard.ablate(regard.head(3, 5))], 1.02),
        ("an edge in all layers and heads", [regard.ablate(regard.edge(100, 17))], 1.10),
        ("an edge in one layer", [regard.ablate(regard.edge(100, 17, layers=2))], 1.10),
    ]
    for name, without, target in kinds:
        plain = lambda: model.trace(texts)  # noqa: E731
        cut = lambda: model.trace(texts, interventions=without)  # noqa: E731, B023
        show(name, turns(plain, cut, 10 if quick else 60), target)


def child(kind: str, length: int, file: Path) -> dict[str, float]:
    """One pass of a model of GPT-2's size: seconds, MiB at the peak above the model; weights' rows in the file."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_positions=GPT2)
    bare = transformers.GPT2Model(config).eval()
    ids = torch.randint(config.vocab_size, (1, length), generator=torch.Generator().manual_seed(1))
    rows = [row for row in KEPT if row < length]
    if kind.startswith("trace"):
        whole = kind == "trace"
        run: Callable[[Any], Any] = lambda x: opened.trace(ids=x.tolist(), attention_outputs=whole)[0]  # noqa: E731
        opened = regard.load(bare)
    else:
        bare.set_attn_implementation(kind)
        run = lambda x: forward(bare, x, kind == "eager")  # noqa: E731
    run(torch.randint(1000, (1, 1100)))  # loads and compiles what it needs
    ctypes.CDLL(None).malloc_trim(0)  # what that freed is given back, else it would serve for what is measured
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak so far is forgotten
    before, start = resident("VmRSS"), time.perf_counter()
    result = run(ids)
    found = {"seconds": time.perf_counter() - start, "peak": (resident("VmHWM") - before) / MIB}
    if kind.startswith("trace"):
        attended = [(m.query, m.key, value) for m, value in zip(result.attention, result.values, strict=True)]
        found["query, key, value"] = sum(t.nbytes for three in attended for t in three) / MIB
        found["hidden_states"] = sum(state.nbytes for state in result.hidden_states) / MIB
        found["attention_outputs"] = sum(block.projected.nbytes for block in result.attention_outputs) / MIB
        kept = {str(n): weights[:, rows].contiguous() for n, weights in enumerate(result.attention)}
    elif kind == "eager":
        kept = {str(n): weights[0, :, rows].contiguous() for n, weights in enumerate(result.attentions)}
    else:
        kept = {}
    safetensors.torch.save_file(kept, file)
    return found


def forward(model: Any, ids: torch.Tensor, attentions: bool) -> Any:
    """The model's own forward pass."""
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False, output_attentions=attentions)


def run_child(kind: str, length: int, file: Path) -> dict[str, float]:
    """What `child` found, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.trace", "--child", kind, str(length), str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=os.environ, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def median(results: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {name: sorted(r[name] for r in results)[len(results) // 2] for name in results[0]}


def random_texts(tokenizer: Any, count: int, words: int, seed: int) -> list[str]:
    """Texts of whole words of the vocabulary, each one token, no two rounds alike."""
    start = "\u0120" if "\u0120the" in tokenizer.get_vocab() else ""
    known = sorted(w.removeprefix(start) for w in tokenizer.get_vocab() if w.startswith(start))
    known = [w for w in known if len(w) > 2 and w.isascii() and w.isalpha() and w.islower()]
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(known), (count, words), generator=generator).tolist()
    return [start.replace("\u0120", " ") + " ".join(known[n] for n in row) for row in drawn]


def show(name: str, took: tuple[float, float, float, float], target: float | None) -> None:
    """One line: both times, their ratio, the ratio of the fastest rounds, the target."""
    against, mine, ratio, best = took
    wanted = "" if target is None else f", at most {target:.2f}{verdict(ratio, target)}"
    print(f"  {name}: {against * 1e3:.0f} ms, {mine * 1e3:.0f} ms, ratio {ratio:.3f} (fastest {best:.3f}){wanted}")


if __name__ == "__main__":
    main()
