"""What attribution takes, holds, and is worth: python -m benchmarks.attribution [speed] [memory]

speed: of SmolLM2 at 512 tokens, each way of attributing a logit against a trace, both in turns.
memory: of SmolLM2, a trace, a direct attribution and one patch in a fresh process, against the eager model that gives
its attention weights out (output_attentions), and TransformerLens, where it is installed: largest resident memory.

REGARD_SMOLLM2 names the folder of SmolLM2; without it, its parts are left out.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable

import torch

import regard
from benchmarks.measure import MIB, machine, rounds, verdict
from regard.explain.causes.outcomes import logit_difference
from regard.models.model import Model

FOLDER = os.environ.get("REGARD_SMOLLM2", "")
LENGTH, MOST = 512, 2.0  # tokens, and how often a trace's time a direct attribution may take
LONG, PLAIN = 4096, (1024, 2048)  # tokens of the memory of ours, and of those that hold n × n
TOKENS = (260, 300)  # two ids of the vocabulary, whose logits are attributed


def main() -> None:
    """Measure what was asked for, all of it by default."""
    parts: dict[str, Callable[[], None]] = {"speed": speed, "memory": memory}
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


if __name__ == "__main__":
    main()
