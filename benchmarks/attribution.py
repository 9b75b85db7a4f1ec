"""What attribution takes, holds, and is worth: python -m benchmarks.attribution [speed] [memory] [heads]

speed: of SmolLM2 at 512 tokens, each way of attributing a logit against a trace, both in turns.
memory: of SmolLM2, a trace, a direct attribution and one patch in a fresh process, against the eager model that gives
its attention weights out (output_attentions), and TransformerLens, where it is installed: largest resident memory.
heads: how the gradients' numbers of heads go with what ablating each of them measures, for texts of MiniLM and SmolLM2.

REGARD_SMOLLM2 names the folder of SmolLM2; without it, its parts are left out.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable

import torch

import regard
from benchmarks.measure import MIB, machine, rounds, verdict
from regard.explain.causes.outcomes import Outcome, cosine, logit_difference
from regard.models.model import Model

FOLDER = os.environ.get("REGARD_SMOLLM2", "")
LENGTH, MOST = 512, 2.0  # tokens, and how often a trace's time a direct attribution may take
LONG, PLAIN = 4096, (1024, 2048)  # tokens of the memory of ours, and of those that hold n × n
TOKENS = (260, 300)  # two ids of the vocabulary, whose logits are attributed
FACTS = (  # a text and two next tokens
    ("The capital of France is", "Paris", "Rome"),
    ("The capital of Japan is", "Tokyo", "Beijing"),
    ("The opposite of hot is", "cold", "small"),
    ("The dog said woof and the cat said", "me", "wo"),
    ("When Mary and John went out, John gave a book to", "Mary", "John"),
)
BANKS = (
    "We sat on the quiet river bank.",
    "The bank of the river was steep.",
    "The bank gave her a loan.",
    "He walked to the bank with his rod.",
)


def main() -> None:
    """Measure what was asked for, all of it by default."""
    parts: dict[str, Callable[[], None]] = {"speed": speed, "memory": memory, "heads": heads}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[], metavar="part", help=", ".join(parts))
    parser.add_argument("--threads", type=int, help="torch's threads, by default as many as it takes")
    parser.add_argument("--peak", nargs=2, metavar=("WHOSE", "TOKENS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    if given.peak:
        peak(given.peak[0], int(given.peak[1]))
        return
    print(machine(), flush=True)
    for name in given.parts or parts:
        parts[name]()


def ids_of(model: Model, length: int) -> list[int]:
    """So many random ids of the vocabulary."""
    count = model.model.get_input_embeddings().num_embeddings
    found: list[int] = torch.randint(100, count, (length,), generator=torch.Generator().manual_seed(0)).tolist()
    return found


def speed() -> None:
    """Print what each way takes, in traces."""
    if not FOLDER:
        print("speed: left out, REGARD_SMOLLM2 names no folder")
        return
    model = regard.load(FOLDER)
    ids = ids_of(model, LENGTH)
    trace = model.trace(ids=ids)
    outcome = logit_difference(model, *TOKENS)
    last = LENGTH - 1
    ways: tuple[tuple[str, Callable[[], object], int, float | None], ...] = (
        ("direct", lambda: regard.attribution(model, trace, last, TOKENS[0], against=TOKENS[1]), 5, MOST),
        (
            "gradient x input",
            lambda: regard.attribute_to_tokens(model, trace, outcome, method="gradient x input"),
            3,
            None,
        ),
        ("heads by gradient", lambda: regard.attribute_to_heads(model, trace, outcome), 3, None),
        ("integrated gradients, 8 steps", lambda: regard.attribute_to_tokens(model, trace, outcome, steps=8), 1, None),
    )
    for name, call, count, target in ways:
        theirs, ours, ratio = rounds(lambda: model.trace(ids=ids), call, count)
        wanted = "" if target is None else f", at most {target:.0f}{verdict(ratio, target)}"
        print(
            f"SmolLM2, {LENGTH} tokens, {name}: {ours:.2f} s, a trace {theirs:.2f} s: {ratio:.2f} ×{wanted}", flush=True
        )


def memory() -> None:
    """Print the largest memory of fresh processes."""
    if not FOLDER:
        print("memory: left out, REGARD_SMOLLM2 names no folder")
        return
    for whose, lengths in (("loaded", (1,)), ("ours", (*PLAIN, LONG)), ("eager", PLAIN), ("tlens", PLAIN)):
        for length in lengths:
            call = [sys.executable, "-m", "benchmarks.attribution", "--peak", whose, str(length)]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            said = done.stdout.strip() or done.stderr.strip().splitlines()[-1]
            print(f"memory, SmolLM2, {length} tokens, {whose}: {said}", flush=True)


def peak(whose: str, length: int) -> None:
    """Do the work of one side, and print this process's largest resident memory."""
    model = regard.load(FOLDER)
    ids = ids_of(model, length)
    if whose == "ours":
        trace = model.trace(ids=ids)
        found = regard.attribution(model, trace, length - 1, TOKENS[0], against=TOKENS[1])
        patch = regard.patch("hidden_states", layer=3, at=length // 2, source="zero")
        model.trace(ids=ids, interventions=[patch])
        assert found.error < 1e-4
    elif whose == "eager":
        model.model.set_attn_implementation("eager")
        with torch.inference_mode():
            output = model.model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
        assert output.attentions[0].shape[-1] == length
    elif whose == "tlens":
        from benchmarks.transformer_lens import bridged

        with torch.inference_mode():
            _, cache = bridged(model).run_with_cache(
                torch.tensor([ids]), names_filter=lambda name: name.endswith("hook_pattern")
            )
        assert next(iter(cache.values())).shape[-1] == length
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB:.0f} MiB")


def heads() -> None:
    """Print the correlation of estimates with what ablating measures, over the heads of each text."""
    model = regard.load()
    reference = model.trace("A bank of a river, with grass.")["bank"]
    compare("MiniLM", model, [(text, cosine("bank", reference)) for text in BANKS])
    if not FOLDER:
        print("heads of SmolLM2: left out, REGARD_SMOLLM2 names no folder")
        return
    model = regard.load(FOLDER)
    compare("SmolLM2", model, [(text, logit_difference(model, a, b)) for text, a, b in FACTS])


def compare(name: str, model: Model, cases: list[tuple[str, Outcome]]) -> None:
    """Print the median and range over texts."""
    found: list[tuple[float, float, int]] = []
    for text, outcome in cases:
        trace = model.trace(text)
        calls = regard.attribute_to_heads(model, trace, outcome)
        sets = [[regard.ablate(regard.head(row["layer"], row["head"]))] for row in calls.rows()]
        measured = torch.zeros(len(sets), dtype=torch.float64)
        for n, run in model.ablated(text, sets):
            measured[n] = outcome.of(trace) - outcome.of(run)
        found.append(agreement(torch.cat(calls.scores), measured))
    plain, ranks, best = zip(*found, strict=True)
    print(
        f"{name}, heads by gradient against ablating each, {len(cases)} texts: correlation {spread(plain)}, of ranks "
        f"{spread(ranks)}; 10 largest effects: {statistics.median(best):.1f} are among the 10 largest estimates",
        flush=True,
    )


def agreement(estimated: torch.Tensor, measured: torch.Tensor) -> tuple[float, float, int]:
    """The correlation of numbers, of their ranks, and how many of the ten largest are the same."""
    ranks = torch.stack([each.argsort().argsort().double() for each in (estimated, measured)])
    top = [set(each.abs().topk(10).indices.tolist()) for each in (estimated, measured)]
    plain = torch.corrcoef(torch.stack([estimated, measured]))
    return float(plain[0, 1]), float(torch.corrcoef(ranks)[0, 1]), len(top[0] & top[1])


def spread(values: tuple[float, ...]) -> str:
    """A median with the range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
