"""How exact traces of real models are, against the models' own eager attention and against float64.

    python -m benchmarks.real             # those that are here, printed
    python -m benchmarks.real --write     # into docs/families.md

One text a model, in float32. `REGARD_SHARED` names the folder with models/stories260K, `REGARD_OPUS_MT` the
translator's, `REGARD_SMOLLM2` that of SmolLM2's GGUF file.
"""

import argparse
import copy
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard
from regard.files import whole
from regard.trace.trace import PairTrace, Trace
from regard.verify.check import STATES, WEIGHTS, largest_difference

TEXT = (
    "The river was high, and the man who had come to fish sat down on the bank to wait. In the town they said that the "
    "bank would close at noon, and that money was to be had by nobody. "
) * 3
TARGET = "La rivière était haute, et l'homme qui était venu pêcher s'assit sur la rive pour attendre."
PAGE = Path(__file__).parent.parent / "docs" / "families.md"
START = "## Real models"  # the page's last section
HEAD = """| model | tokens | computed by | weights | states | result | from float64: weights | states | status |
|---|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Measure the models that are here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the section of docs/families.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[str] = []
    for name, source in sources().items():
        for row in measured(name, source):
            print(row, flush=True)
            rows.append(row)
    if given.write:
        write(rows)


def sources() -> dict[str, Any]:
    """Where the models are, of those that are here."""
    found: dict[str, Any] = {"all-MiniLM-L6-v2": None}
    places = {
        "stories260K": ("REGARD_SHARED", "models/stories260K"),
        "opus-mt-en-fr": ("REGARD_OPUS_MT", "."),
        "SmolLM2-135M-Instruct (Q4_1)": ("REGARD_SMOLLM2", "."),
    }
    for name, (variable, folder) in places.items():
        place = Path(os.environ.get(variable, ""), folder)
        if not os.environ.get(variable) or not place.is_dir():
            print(f"{name}: not here, {variable} names no folder that has it")
            continue
        found[name] = next(iter(sorted(place.glob("*.gguf"))), place)
    return found


def measured(name: str, source: Any) -> list[str]:
    """The table's rows of a model: its own eager attention against float64, then traces against both."""
    opened = regard.load(source, device="cpu")
    target = TARGET if opened.pairs else None
    first = opened.trace(TEXT, target=target)
    inputs = {"input_ids": torch.tensor([[token.id for token in _ends(first)[0].tokens]])}
    if target is not None:
        inputs["decoder_input_ids"] = torch.tensor([[token.id for token in first.sides[-1].tokens]])
    twin = type(opened.model)._from_config(copy.deepcopy(opened.model.config), attn_implementation="eager").eval()
    twin.load_state_dict(opened.model.state_dict())
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        own, plain = twin(**inputs, **asked), opened.model(**inputs)
        exact = twin.double()(**inputs, **asked)
    tokens = " + ".join(str(each.shape[1]) for each in inputs.values())
    rounding = [_number(own, exact, WEIGHTS), _number(own, exact, STATES)]
    rows = [f"| {name} | {tokens} | its own eager attention | | | | {_row(rounding)} | |"]
    trace = opened.trace(TEXT, target=target)
    last = _ends(trace)[1]
    seen = last.logits if last.logits is not None else last.last_hidden_state
    numbers = [
        _number(trace, own, WEIGHTS),
        _number(trace, own, STATES),
        float((seen - _result(plain)).abs().max()) / max(1.0, float(seen.abs().max())),
    ]
    numbers += [_number(trace, exact, WEIGHTS), _number(trace, exact, STATES), trace.status.difference]
    return [*rows, f"| | | trace | {_row(numbers)} |"]


def write(rows: Sequence[str]) -> None:
    """Put the section of real models into docs/families.md."""
    version = torch.__version__.partition("+")[0]
    section = f"""{START}

Measured with `python -m benchmarks.real --write`, in float32, with torch {version}:

- *weights*: largest difference of any attention weight from the model's own eager attention.
- *states*: largest difference of any hidden state, divided by the largest value if that is above 1.
- *result*: the same for the logits (for MiniLM the last hidden state), compared with PyTorch's kernel.
- *from float64*: differences from the eager model in float64.
- *status*: the difference that the trace's status reports. It compares weights computed from the same queries and keys.

{HEAD}{chr(10).join(rows)}

gte-small, measured on another machine, is within 2.7e-05.
"""
    text = PAGE.read_text(encoding="utf-8")
    text = text.partition(START)[0] + section
    with whole(PAGE) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _ends(trace: Trace | PairTrace) -> tuple[Trace, Trace]:
    return trace.sides[0], trace.sides[-1]


def _result(output: Any) -> Tensor:
    return output.logits[0] if getattr(output, "logits", None) is not None else output.last_hidden_state[0]


def _number(ours: Any, own: Any, fields: tuple[str, ...]) -> float | None:
    found = largest_difference(ours, own, fields)
    return None if found is None else found[0]


def _row(numbers: Sequence[float | None]) -> str:
    return " | ".join("not compared" if number is None else f"{number:.0e}" for number in numbers)


if __name__ == "__main__":
    main()
