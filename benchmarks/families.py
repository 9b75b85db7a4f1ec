"""Every family of the installed transformers, as a tiny random model, traced and held against its own eager attention.

python -m benchmarks.families [FAMILY ...]            prints a line for each
python -m benchmarks.families --write [FAMILY ...]    writes docs/families_table.md, or these families' rows of it anew

Each family runs in a process of its own, with a time limit. A family is exact where all weights are within 1e-5 of what
a copy of it, made with `attn_implementation="eager"`, gives for `output_attentions=True`; where the last states are
within 1e-4 of a plain forward pass; and where the states between the layers are within 1e-4 of what it reports (of the
largest number, where that is above 1). What fails in float32 and holds in float64 is exact, and rounding is told.
"""

import argparse
import copy
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from benchmarks.tiny import UnfitError, make, run, told
from regard.capture.build_trace import CONTRARY, OTHER_WEIGHTS
from regard.capture.eager_attention import NOTE
from regard.capture.inputs import NUMBERED
from regard.errors import RegardError
from regard.files import whole
from regard.models.model import Model
from regard.verify.check import FAILED, RESULT, STATES, WEIGHTS, check, largest_difference

PAGE = Path(__file__).parent.parent / "docs" / "families_table.md"
Row = tuple[str, str, str]  # family, kind, and what is told of it
SECONDS = 90  # of processor time, for each family
KINDS = ("exact", "noted", "refused", "unfit", "no input", "wrong")
SHORT = {NOTE: "its own eager attention", NUMBERED: ""}  # notes of many families, as the page has them


def main() -> None:
    """Sweep the families that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="model types of transformers; by default all")
    parser.add_argument("--write", action="store_true", help="write the page, of named families their rows")
    parser.add_argument("--jobs", type=int, default=1, help="how many families at a time (1)")
    given = parser.parse_args()
    rows = []
    families = given.families or sorted(CONFIG_MAPPING_NAMES)
    with ThreadPoolExecutor(given.jobs) as pool:
        for family, (kind, reason) in zip(families, pool.map(in_a_process, families), strict=True):
            rows.append((family, kind, reason))
            print(f"{family:32} {kind:9} {reason}", flush=True)
    print(f"{len(rows)} families: {counted(rows)}")
    if given.write:
        write(replaced(rows_of(PAGE.read_text(encoding="utf-8")), rows) if given.families else rows)


def counted(rows: list[Row]) -> str:
    """How many families are of each kind."""
    return ", ".join(f"{sum(row[1] == kind for row in rows)} {kind}" for kind in KINDS)


def rows_of(page: str) -> list[Row]:
    """The rows of the page's long table."""
    return [
        (row[1], row[2], row[3]) for row in re.finditer(rf"^\| (\S+) \| ({'|'.join(KINDS)}) \| (.*) \|$", page, re.M)
    ]


def replaced(rows: list[Row], new: list[Row]) -> list[Row]:
    """Rows with those of some families in the place of their own."""
    return sorted({row[0]: row for row in (*rows, *new)}.values())


def in_a_process(family: str, look: Callable[[str], tuple[str, str]] | None = None) -> tuple[str, str]:
    """(kind, what is told) of one family, found by a function in a forked child that may crash or hang."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(20 * SECONDS)  # in case it waits for something
        try:
            kind, reason = (look or traces_of)(family)
        except BaseException as error:  # whatever a family does is told, never raised here
            kind, reason = "wrong", f"not refused by name: {told(error)}"
        os.write(written, f"{kind}\n{reason}".encode()[:4000])
        os._exit(0)
    os.close(written)
    with os.fdopen(read, "rb") as answer:
        content = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if not content:
        return "unfit", f"its process ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no answer"
    kind, _, reason = content.partition("\n")
    return kind, reason.replace("\n", " ")


def traces_of(family: str) -> tuple[str, str]:
    """Make the family's tiny model, trace what it reads, compare."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        model, inputs = make(family)
    except LookupError:
        return "no input", "no model that reads ids by a table of its own, or pixels, or sound"
    except Exception as error:
        return "unfit", str(error) if isinstance(error, UnfitError) else told(error)
    kind, reason, _ = compare(model, inputs, family)
    if kind == "wrong":  # is it an error, or does the family make much of how float32 is rounded?
        failed = failed_checks(Model(model, None, name=family), inputs)
        doubles = {name: each.double() if each.is_floating_point() else each for name, each in inputs.items()}
        again, _, worst = compare(model.double(), doubles, family, checks=False)
        if again == "exact" and not failed:
            return "exact", f"in float64 weights {worst:.0e}; in float32 {reason}"
    return kind, reason


def compare(
    model: Any, inputs: dict[str, Tensor], family: str, *, checks: bool = True
) -> tuple[str, str, float | None]:
    """(kind, what is told, largest difference of a weight) of a model and what it reads.

    checks: whether `regard check` is run if these hold.
    """
    try:
        expected, plain = eager(model, inputs)
    except Exception as error:
        return "unfit", f"its eager copy does not run: {told(error)}", None
    if not repeats(model, inputs):
        return "unfit", "two passes of it differ: it draws at random", None
    opened = Model(model, None, name=family)
    try:
        trace = traced(opened, inputs)
    except RegardError as error:
        return "refused", str(error).removeprefix(f"model {family!r}: "), None
    weights, between, result = (
        _difference(trace, *each) for each in ((expected, WEIGHTS), (expected, STATES), (plain, RESULT))
    )
    if weights is None:
        return "unfit", "its eager attention gives no weights to compare with", None
    status = trace.sides[-1].status
    parts = status.embedding_difference
    notes = "".join(f"; {said}" for said in (SHORT.get(note, note) for note in status.notes) if said)
    read = "" if "input_ids" in inputs else f" ({next(iter(inputs))})"
    numbers = [
        f"weights {weights:.0e}",
        f"last state {_number(result)}",
        f"states {_number(between)}",
        f"sum of embedding parts {'not found' if parts is None else f'{parts:.0e}'}",
    ]
    reason, states = ", ".join(numbers) + read + notes, max(result or 0.0, between or 0.0)
    worst = weights
    if worst <= 1e-5 and states <= 1e-4:
        failed = failed_checks(opened, inputs) if checks else ""
        return ("wrong", f"{reason}; {failed}", worst) if failed else ("exact", reason, worst)
    if CONTRARY in status.notes and worst <= 1e-4:
        return "noted", reason, worst
    told_of = any(
        "left out" in note or "attention in" in note or "attention calls in" in note or note == OTHER_WEIGHTS
        for note in status.notes
    )
    return "noted" if told_of and states <= 1e-4 else "wrong", reason, worst


def failed_checks(opened: Model, inputs: dict[str, Tensor]) -> str:
    """Name the checks of `regard check` that fail on ids of its own, or on these inputs; empty if none does."""
    given = None if "input_ids" in inputs else {n: x for n, x in inputs.items() if n != "decoder_input_ids"}
    try:
        failed = check(opened, inputs=given).of(FAILED)
    except RegardError:  # nothing is measured
        return ""
    return "; ".join(f"{each.check} fails by {each.difference:.0e} at {each.where}" for each in failed)


def traced(opened: Model, inputs: dict[str, Tensor]) -> Any:
    """The trace of what a model reads."""
    target = inputs["decoder_input_ids"][0].tolist() if "decoder_input_ids" in inputs else None
    if "input_ids" in inputs and "pixel_values" not in inputs:
        return opened.trace(ids=inputs["input_ids"][0].tolist(), target_ids=target)
    items = {name: tensor for name, tensor in inputs.items() if name != "decoder_input_ids"}
    return opened.trace(inputs=items, target_ids=target)


def eager(model: Any, inputs: dict[str, Tensor]) -> tuple[Any, Any]:
    """What an eager copy of the model says of itself, and a plain forward pass of the model."""
    twin = type(model)._from_config(copy.deepcopy(model.config), attn_implementation="eager").eval()
    twin = twin.to(model.dtype)
    twin.load_state_dict(model.state_dict())
    own = run(twin, inputs, output_attentions=True, output_hidden_states=True)
    return own, run(model, inputs)


def repeats(model: Any, inputs: dict[str, Tensor]) -> bool:
    """Whether two plain passes of the model give the same."""
    outputs = [run(model, inputs) for _ in range(2)]
    one, two = (list(each.values()) if isinstance(each, dict) else list(each) for each in outputs)
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True) if isinstance(a, Tensor))


def _difference(ours: Any, own: Any, fields: tuple[str, ...]) -> float | None:
    found = largest_difference(ours, own, fields)
    return None if found is None else found[0]


def _number(difference: float | None) -> str:
    return "not compared" if difference is None else f"{difference:.0e}"


def write(rows: list[Row]) -> None:
    """Write docs/families_table.md."""
    table = "\n".join(f"| {family} | {kind} | {reason.replace('|', '/')} |" for family, kind, reason in rows)
    page = f"""# Table of architectures

This table shows how regard works with each architecture of transformers {transformers.__version__},
tested with a tiny random model (`python -m benchmarks.families --write`): {len(rows)} families, {counted(rows)}.
Type a name above the table to find its row.

*exact*: all attention weights are within 1e-5 of the architecture's own eager attention, and states within 1e-4.
*noted*: regard shows the weights, and the trace's status reports their peculiarity. *refused*: not supported, and
regard raises an error with the reason in the row. *unfit* and *no input*: not tested, for the reason in the row.
*wrong*: wrong numbers, or a failure without a clear reason. [Supported architectures](families.md) explains more.

| architecture | | largest differences, or the reason |
|---|---|---|
{table}
"""
    with whole(PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    started = time.time()
    main()
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
