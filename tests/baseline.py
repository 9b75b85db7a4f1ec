"""Record what a user sees, and compare a later tree with it to the bit: for moves and renames.

python -m tests.baseline record out/baseline.json    # on the tree before a change, outside any version of it
python -m tests.baseline check out/baseline.json     # after it: prints every difference, exit code 1 where there is one

Recorded are the JSON of 20 commands and digests of traced tensors, on MiniLM, on stories260K (REGARD_SHARED, or
../shared) and on an encoder-decoder (REGARD_OPUS_MT). The figures are those of one machine: record and check on the
same one. Seconds are left out.
"""

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

import regard
from regard.cli.main import main
from regard.explain.causes.contributions import contributions
from regard.explain.causes.rollout import rollout

RIVER = "Write a poem about a man fishing on a river bank."
MONEY = "Write a poem about a man withdrawing money from a bank."
STORY = "Once upon a time, there was a little girl named Lily."
TALL = "The black cat sat on the mat because the tall man had left his old hat there."
SHARED = Path(os.environ.get("REGARD_SHARED", Path(__file__).parents[2] / "shared"))
STORIES = str(SHARED / "models" / "stories260K")
OPUS = os.environ.get("REGARD_OPUS_MT", "")

RENAMED = {  # keys of the JSON: what they were called when the record was made, and what they may be called now
    "states": ("hidden_states",),
    "sight": ("summary",),
    "lenses": ("logit_lenses",),
    "told": ("disagreement",),
    "steps": ("layer_updates", "updates"),
}
IGNORED = {"seconds", "version"}


def commands(long_text: str, trace: str, run: str) -> list[list[str]]:
    """The commands, without their --json. long_text: a file; trace: a saved trace to open; run: a training run."""
    stories = ["--model", STORIES]
    opus = ["--model", OPUS]
    return [
        ["see", RIVER, MONEY, "--word", "bank", "--compare", "money,river,water,loan"],
        ["see", RIVER],
        ["see", RIVER, MONEY, "--word", "bank", "--layer", "2", "--head", "5", "--top", "7"],
        ["see", TALL * 3, "--window", "24", "--stride", "11", "--word", "cat"],
        ["see", RIVER, "--word", "bank", "--static", "learned", "--compare", "money,river"],
        ["see", STORY, "--word", "little", "--logit-lens", *stories],
        ["see", STORY, *stories],
        ["see", "The cat sat.", "--target-text", "Le chat dormait.", "--word", "cat", *opus],
        ["see", "--open", trace, "--word", "bank"],
        ["why", RIVER, "--word", "bank"],
        ["why", STORY, "--word", "girl", *stories],
        ["why", "The cat sat.", "--target-text", "Le chat dormait.", "--word", "chat", *opus],
        ["map", long_text, "--layer", "1"],
        ["map", long_text, "--layer", "3", "--head", "2", "--window", "100", "--far", "10"],
        ["map", long_text, "--layer", "2", *stories],
        ["steps", RIVER, "--word", "river", "--layer", "3", "--head", "4"],
        ["steps", STORY, "--word", "Lily", "--layer", "1", "--head", "2", *stories],
        ["translate", "The black cat sleeps.", "I love you.", *opus],
        ["evolve", run, "--layer", "0"],
        ["evolve", run, "--layer", "1", "--head", "1"],
    ]


def run_command(arguments: list[str]) -> str:
    """Run the command in this process; standard output and error. Raises RuntimeError where it fails."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(arguments)
        except SystemExit as left:
            if left.code:
                raise RuntimeError(f"regard {' '.join(arguments)}: {out.getvalue()}") from left
    return out.getvalue()


def outputs(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each command and its JSON."""
    long_text, trace, run = folder / "long.txt", folder / "trace.safetensors", folder / "run"
    long_text.write_text(f"{RIVER} {TALL} {MONEY} " * 5, encoding="utf-8")
    texts = folder / "texts.txt"
    texts.write_text(f"{RIVER}\n{MONEY}\n{TALL}\n{STORY}\n" * 20, encoding="utf-8")
    run_command(["see", RIVER, MONEY, "--word", "bank", "--save", str(trace)])
    small = ("layers=2", "heads=2", "d_model=32", "block=64", "watch_every=10", "sample_every=0")
    settings = [each for pair in small for each in ("--set", pair)]
    run_command(["train", str(texts), "--out", str(run), "--steps", "20", "--watch", RIVER, *settings])
    for number, arguments in enumerate(commands(str(long_text), str(trace), str(run))):
        file = folder / f"{number}.json"
        run_command([*arguments, "--json", str(file)])
        found = json.loads(file.read_text(encoding="utf-8").replace(str(folder), "FOLDER"))
        yield f"{number}: regard {' '.join(arguments)[:60]}".replace(str(folder), "FOLDER"), found


def digest(tensor: torch.Tensor | None) -> str | None:
    """A digest of a tensor's shape, dtype and bits."""
    if tensor is None:
        return None
    flat = tensor.detach().cpu().contiguous()
    told = f"{tuple(flat.shape)} {flat.dtype} ".encode()
    return hashlib.sha256(told + flat.view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def tensors(trace: Any) -> dict[str, Any]:
    """Digests of everything in a trace, and of what is made of it."""
    if len(trace.sides) > 1:
        return {side: tensors(each) for side, each in zip(("encoder", "decoder"), trace.sides, strict=True)}
    found: dict[str, Any] = {
        name: digest(getattr(trace, name))
        for name in ("token_embeddings", "position_embeddings", "segment", "input", "last_hidden_state", "logits")
    }
    found["hidden_states"] = [digest(each) for each in trace.hidden_states]
    for name in ("attention", "cross"):
        maps = getattr(trace, name)
        found[name] = [digest(each.dense()) for each in maps]
        found[f"{name}_scores"] = [digest(each.scores[:, 2:5]) for each in maps]
        figures = [each.statistics(top=3, pooled=(3, 5)) for each in maps]
        found[f"{name}_figures"] = [[digest(f.entropy), digest(f.received), digest(f.pooled)] for f in figures]
    found["values"] = [digest(each) for each in trace.values]
    if trace.attention_outputs:
        made = contributions(trace, 0, 2)
        found["contributions"] = [digest(made.norms), digest(made.shares), digest(made.heads())]
    if not trace.cross:
        found["rollout"] = digest(rollout(trace, [2]))
    found["difference"] = trace.status.difference
    found["kernels"] = list(trace.status.kernels)
    return found


def traces() -> Iterator[tuple[str, Any]]:
    """Digests of traces of three models: plain, ablated, and of a text that was written."""
    minilm, stories = regard.load(device="cpu"), regard.load(STORIES, device="cpu")
    for name, each in zip(("river", "money"), minilm.trace([RIVER, MONEY]), strict=True):
        yield f"minilm {name}", tensors(each)
    ablations = [regard.ablate(regard.head(3, 5)), regard.ablate(regard.edge("bank", "river"))]
    yield "minilm ablated", tensors(minilm.trace(RIVER, interventions=ablations))
    yield "stories", tensors(stories.trace(STORY))
    yield "stories generated", tensors(stories.generate("Once upon", max_new_tokens=8).trace)
    pair = regard.load(OPUS, device="cpu")
    yield "opus", tensors(pair.trace("The cat sat.", target="Le chat dormait."))
    yield "opus generated", tensors(pair.generate("I love you.").trace)


def record() -> dict[str, Any]:
    """Everything, as plain data."""
    with tempfile.TemporaryDirectory() as folder:
        return {"commands": dict(outputs(Path(folder))), "traces": dict(traces())}


def differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where two records differ, a line each."""
    if isinstance(before, dict) and isinstance(now, dict):
        old = {
            next((name for name in RENAMED.get(key, ()) if name in now), key): value
            for key, value in before.items()
            if key not in IGNORED
        }
        for key in sorted({*old, *now} - IGNORED):
            if key not in old or key not in now:
                yield f"{place}/{key}: only {'before' if key in old else 'now'}"
            else:
                yield from differences(old[key], now[key], f"{place}/{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (a, b) in enumerate(zip(before, now, strict=True)):
            yield from differences(a, b, f"{place}[{number}]")
    elif before != now and not (before != before and now != now):
        yield f"{place}: {str(before)[:80]!r} before, {str(now)[:80]!r} now"


def run(verb: str, file: str) -> int:
    """Record to a file, or check against it."""
    if verb == "record":
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(json.dumps(record()), encoding="utf-8")
        return 0
    found = list(differences(json.loads(Path(file).read_text(encoding="utf-8")), json.loads(json.dumps(record()))))
    print("\n".join(found[:60]))
    print(f"{len(found)} differences")
    return bool(found)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "check"):
        sys.exit(f"baseline: given {' '.join(sys.argv[1:]) or 'nothing'}, needs record FILE or check FILE")
    sys.exit(run(*sys.argv[1:]))
