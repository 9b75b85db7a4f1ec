"""What a sweep of patches takes against hooks written by hand: python -m benchmarks.experiments

All layers × positions, hidden states, one patch a run on the other side: a forward hook on the model of transformers
with its SDPA attention. Both sides take turns; of more patches than --timed, every n-th is run on the other side, and
their time is scaled. Cells are compared with hooks on the eager model. Models: MiniLM at 32 tokens, and SmolLM2 at 64
where REGARD_SMOLLM2 names its folder, once with an outcome of the last contextual embedding (neither side computes
logits) and once with one of the last logits (the hooks' run computes those of all tokens, as the model does).
"""

import argparse
import copy
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch

import regard
from benchmarks.measure import machine, verdict
from regard.explain.causes.outcomes import Outcome
from regard.models.model import Model

TEXT = (
    "we sat on the quiet {} bank and saw a small boat on the blue water there before the night came and all of us went "
    "home to eat and then to sleep until the sun rose over the hills and we walked back to the same place to look for "
    "the boat that had gone away in the dark of the night"
)

Outcomes = Literal["last_hidden_state", "logits"]


def main() -> None:
    """Print the ratio and the largest difference of every model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides run")
    parser.add_argument("--threads", type=int, help="torch's threads, by default as many as it takes")
    parser.add_argument("--processor", action="store_true", help="time of the processor, where others use the machine")
    parser.add_argument("--only", choices=["MiniLM", "SmolLM2"], help="one of the models")
    parser.add_argument("--timed", type=int, default=192, help="runs of the other side that are timed, at most")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    print(machine())
    clock = time.process_time if given.processor else time.perf_counter
    how = Rounds(given.rounds, given.timed, clock)
    if given.only != "SmolLM2":
        sweep("MiniLM", regard.load(), 32, "encoder.layer", 4.0, how)
    if given.only == "MiniLM":
        return
    folder = os.environ.get("REGARD_SMOLLM2", "")
    if folder:
        model = regard.load(folder)
        for of in get_args(Outcomes):
            sweep("SmolLM2", model, 64, "model.layers", 4.0, how, of)
    else:
        print("SmolLM2: left out, REGARD_SMOLLM2 names no folder")


@dataclass(frozen=True)
class Rounds:
    """How both sides are measured: how often, how many runs of the other side, and by which clock."""

    count: int
    timed: int
    clock: Callable[[], float]

    def seconds(self, call: Callable[[], object]) -> float:
        """How long one call takes."""
        start = self.clock()
        call()
        return self.clock() - start


def texts(model: Model, length: int) -> tuple[str, str]:
    """Two texts of so many tokens that differ in one word."""
    words = TEXT.split()
    for count in range(len(words), 0, -1):
        text = " ".join(words[:count])
        if len(model.trace(text.format("river")).tokens) <= length:
            return text.format("river"), text.format("money")
    raise AssertionError


def sweep(
    name: str,
    model: Model,
    length: int,
    layers: str,
    target: float,
    how: Rounds,
    of: Outcomes = "last_hidden_state",
) -> None:
    """Compare a sweep with one run for each patch."""
    clean, corrupted = texts(model, length)
    source = model.trace(clean)
    outcome = Outcome("norm", lambda trace: getattr(trace.sides[-1], of)[-1].norm(), logits=of == "logits")
    depth, count = len(source.attention), len(source.tokens)
    states = [state.clone() for state in source.hidden_states]
    inputs = model.tokenizer(corrupted, return_tensors="pt")

    def ours(first: int = 0) -> list[list[float]]:
        return regard.patch_sweep(model, clean, corrupted, outcome, layers=range(first, depth)).outcomes

    sdpa = by_hand(with_attention(model, "sdpa"), layers, inputs, states, of)

    cells = [(layer, place) for layer in range(depth) for place in range(count)]
    timed = cells[:: max(1, len(cells) // how.timed)]

    def hooks() -> float:
        """Seconds of one run for each patch; of many patches, as many times those of every n-th."""
        return how.seconds(lambda: [sdpa(*cell) for cell in timed]) * len(cells) / len(timed)

    ours(depth - 1)
    sdpa(0, 0)
    found: list[list[float]] = []
    times = [(hooks(), how.seconds(lambda: found.__setitem__(slice(None), ours()))) for _ in range(how.count)]
    ratios = sorted(theirs / mine for theirs, mine in times)
    best = min(theirs for theirs, _ in times) / min(mine for _, mine in times)
    eager = by_hand(with_attention(model, "eager"), layers, inputs, states, of)
    places = [(layer, place) for layer in {0, depth // 2, depth - 1} for place in {1, count // 2, count - 1}]
    apart = max(
        abs(found[layer][place] - (value := float(eager(layer, place).norm()))) / max(1.0, abs(value))
        for layer, place in places
    )
    middle = ratios[len(ratios) // 2]
    wanted = f"at least {target:.0f} ×{verdict(-middle, -target)}"
    print(
        f"{name}, {count} tokens, {depth * count} patches, {of}: sweep {min(m for _, m in times):.2f} s, one run each "
        f"{min(t for t, _ in times):.2f} s, ratio {middle:.1f} (fastest {best:.1f}), {wanted}; largest difference to "
        f"eager hooks in {len(places)} cells {apart:.1e}, at most 1e-5{verdict(apart, 1e-5)}",
        flush=True,
    )


def with_attention(model: Model, kind: str) -> torch.nn.Module:
    """A copy of the model that runs with one of transformers' own attention functions."""
    copied = copy.deepcopy(model.model).eval()
    copied.set_attn_implementation(kind)
    return copied


def by_hand(
    model: torch.nn.Module, layers: str, inputs: dict[str, torch.Tensor], states: list[torch.Tensor], of: Outcomes
) -> Callable[[int, int], torch.Tensor]:
    """A function that runs the model with one patch, by a hook, and gives the last token's outcome."""
    runs = model if of == "logits" else model.base_model
    name = "logits" if of == "logits" else "last_hidden_state"

    def run(layer: int, place: int) -> torch.Tensor:
        def hook(_module: torch.nn.Module, _args: object, output: object) -> object:
            held = output[0] if isinstance(output, tuple) else output
            assert isinstance(held, torch.Tensor)
            held = held.clone()
            held[0, place] = states[layer + 1][place]
            return (held, *output[1:]) if isinstance(output, tuple) else held

        handle = model.get_submodule(f"{layers}.{layer}").register_forward_hook(hook)
        try:
            with torch.inference_mode():
                return getattr(runs(**inputs), name)[0, -1]  # type: ignore[operator]
        finally:
            handle.remove()

    return run


if __name__ == "__main__":
    main()
