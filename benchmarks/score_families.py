"""Every text family that traces open, as a tiny random model: how many of its attention scores split exactly.

python -m benchmarks.score_families [FAMILY ...]            prints a line for each
python -m benchmarks.score_families --write [FAMILY ...]    writes docs/score_families.md, or these families' rows anew

The families are those of docs/families_table.md whose traces are exact or noted and that read ids. Biases, weights of
norms, which a new model has at 0 and 1, are drawn at random first. Of each kind of attention a model has, the scores of
its last layer are split, of its first and its last head, for one query and key; a family is exact where all of them sum
to the score within 1e-5 of the sum of the absolute values of their parts (`regard.score_sources` checks that).
"""

import argparse
import re
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import transformers

import regard
from benchmarks import families
from benchmarks.tiny import make
from regard.errors import RegardError
from regard.files import whole
from regard.models.model import Model
from regard.trace.trace import PairTrace

PAGE = Path(__file__).parent.parent / "docs" / "score_families.md"
QUERY, KEY = 5, 4
OTHER_INPUTS = re.compile(r"\((pixel|input_features|input_values)")


def main() -> None:
    """Sweep the families that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="model types of transformers; by default all")
    parser.add_argument("--write", action="store_true", help="write docs/score_families.md")
    parser.add_argument("--jobs", type=int, default=1, help="how many families at a time (1)")
    given = parser.parse_args()
    names = given.families or text_families()
    rows = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for name, (kind, said) in zip(
            names, pool.map(lambda each: families.in_a_process(each, look), names), strict=True
        ):
            rows.append((name, kind, said))
            print(f"{name:32} {kind:9} {said}", flush=True)
    print(counted(rows))
    if given.write:
        kept = families.rows_of(PAGE.read_text(encoding="utf-8")) if given.families else []
        write(families.replaced(kept, rows))


def text_families() -> list[str]:
    """The families of docs/families_table.md that are traced and read ids."""
    rows = families.rows_of(families.PAGE.read_text(encoding="utf-8"))
    return [name for name, kind, said in rows if kind in ("exact", "noted") and not OTHER_INPUTS.search(said)]


def counted(rows: list[families.Row]) -> str:
    """How many families there are, and how many of them are exact."""
    exact = sum(kind == "exact" for _, kind, _ in rows)
    return f"{len(rows)} architectures, {exact} exact ({exact / max(1, len(rows)):.0%})"


def look(family: str) -> tuple[str, str]:
    """(kind, what is told) of one family."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    model, inputs = make(family)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    opened = Model(model, None, name=family)
    try:
        trace = families.traced(opened, inputs)
        return "exact", splits(opened, trace)
    except RegardError as error:
        return "refused", re.sub(r"^score_sources of layer \d+ of \S+: |^model '\S+': ", "", str(error))


def splits(opened: Model, trace: object) -> str:
    """What the splits of a model's scores are made of, and the largest error of a sum."""
    kinds = (("encoder", 0), ("decoder", 1), ("cross", 1)) if isinstance(trace, PairTrace) else ((None, 0),)
    said, worst = [], 0.0
    for part, side in kinds:
        own = trace.sides[side]  # type: ignore[attr-defined]
        maps = own.cross if part == "cross" else own.attention
        held = [n for n in range(len(maps)) if _is_held(maps, n)]
        if not held:
            continue
        found = [
            regard.score_sources(opened, trace, QUERY, KEY, layer=held[-1], head=head, part=part)  # type: ignore[arg-type]
            for head in (0, maps[held[-1]].shape[0] - 1)
        ]
        worst = max(worst, *(each.error for each in found))
        many = len(found[0].query_parts.writers), len(found[0].key_parts.writers)
        said.append(f"{part + ' ' if part else ''}{many[0]} × {many[1]} parts")
    if not said:
        raise RegardError("no layer makes one attention call")
    return f"{', '.join(said)}, error {worst:.0e}"


def _is_held(maps: object, layer: int) -> bool:
    try:
        maps[layer]  # type: ignore[index]
    except RegardError:
        return False
    return True


def write(rows: list[families.Row]) -> None:
    """Write docs/score_families.md."""
    table = "\n".join(f"| {family} | {kind} | {said.replace('|', '/')} |" for family, kind, said in rows)
    page = f"""# Architectures whose scores split

Check here if `regard.score_sources` ([explain an attention score](score_sources.md)) can split the scores of your
model. regard also checks every call, and raises an error for a model that it can't split. The table shows the result
for a tiny random model of each text architecture of Transformers {transformers.__version__} that regard can trace:
{counted(rows)}.

- *exact*: the scores split within 1e-5 of the sum of the absolute values of their parts. We tested the first and the
  last head of the last layer, for each kind of attention. *error* is the largest error, *parts* the number of
  components of query × key.
- *refused*: not supported, with the error that you get.
- *unfit*: not tested, because no model could be built or run.

You can repeat the test with `python -m benchmarks.score_families --write`.

| family | | parts, or why not |
|---|---|---|
{table}
"""
    with whole(PAGE) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    started = time.time()
    main()
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
