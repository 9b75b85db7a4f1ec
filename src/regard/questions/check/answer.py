"""Check every claim of exactness for one model on this machine, and tell which hold, by how much, and which do not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch

from regard.display.answer import Answer
from regard.display.asked import Progress
from regard.display.panels import Column, Panel, Table
from regard.explain.frames import Row
from regard.explain.wording import listed
from regard.models.load import load
from regard.models.model import Model
from regard.questions.check import changes, changing, decoding, kinds, passes, products, sums
from regard.questions.check.claims import FAILS, HOLDS, MOST, TIMES, UNMEASURED, Claim, measured
from regard.questions.check.passes import Read
from regard.questions.check.readings import readings_of

NAMED = 5  # failures that are told in sentences
Step = Callable[[], list[Claim]]


@dataclass(frozen=True, eq=False, repr=False)
class Check(Answer):
    """Every claim of exactness that was measured of a model. name: the model's. where: what it was computed with."""

    format: ClassVar[str] = "regard check"

    name: str
    where: str
    claims: Sequence[Claim] = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether no claim that was measured fails."""
        return not self.of(FAILS)

    def of(self, outcome: str) -> list[Claim]:
        """Return the claims that came out like this."""
        return [each for each in self.claims if each.outcome == outcome]

    def title(self) -> str:
        """Say of how many claims how many hold."""
        kinds = self._outcomes()
        done = len(kinds[HOLDS]) + len(kinds[FAILS])
        left = f", {len(kinds[UNMEASURED])} not measured" if kinds[UNMEASURED] else ""
        return f"{self.name}: {len(kinds[HOLDS])} of {done} measured claims of exactness hold{left}"

    def findings(self) -> list[str]:
        """Name each claim that fails, or say how near the nearest to its bound is; name what was not measured."""
        failed, held, left = self.of(FAILS), self.of(HOLDS), self.of(UNMEASURED)
        told = [f"{FAILS}: {_named(each)}: {_told(each)}." for each in failed[:NAMED]]
        if len(failed) > NAMED:
            told.append(f"{len(failed) - NAMED} more measurements fail: the table has them.")
        told.append(self._counts())
        if held and not failed:
            near = max(held, key=lambda each: (each.difference or 0.0) / (each.bound or 1.0))
            told[-1] += f" The nearest to its bound is {_named(near)}: {_told(near)}."
        reasons: dict[str, list[str]] = {}
        for each in left:
            reasons.setdefault(each.reason, []).append(each.area)
        told += [f"Not measured: {listed(list(dict.fromkeys(areas)))}: {why}." for why, areas in reasons.items()]
        return told

    def exactness(self) -> list[str]:
        """Say what a bound is, and what was computed with."""
        return [
            f"Checked with {self.where}.",
            f"A bound is that of numbers that round little, or {TIMES:g} times what the model's own code is off "
            f"float64, never more than {MOST:g}; vectors are measured in parts of their largest number.",
        ]

    def rows(self) -> list[Row]:
        """List one row a claim, with its outcome."""
        return [asdict(each) | {"outcome": each.outcome} for each in self.claims]

    def data(self) -> dict[str, object]:
        """Give whether all hold, and every claim."""
        return {"model": self.name, "holds": self.holds, "computed_with": self.where, "rows": self.rows()}

    def panels(self) -> list[Panel]:
        """Show each claim at its worst, and every measurement."""
        columns = [
            Column("claim"), Column("apart"), Column("bound"), Column(""), Column("own rounding", detail=True),
            Column("of", detail=True), Column("where most", detail=True),
        ]  # fmt: skip
        note = "Apart: the largest difference that was measured. Own rounding: how far its own code is from float64."
        if any(_left(each) for each in self._by_claim().values()):
            note += " In part: some of its measurements could not be made."
        told: dict[str, Any] = {"note": note, "columns": columns}
        every = [_cells(each) for each in self.claims]
        first = [_cells(_worst(each), _left(each)) for each in self._by_claim().values()]
        return [
            Table(name="Claims", title="Every claim, at its worst", rows=first, screen=True, **told),
            Table(name="Every measurement", title="Every measurement", rows=every, **told),
        ]

    def _outcomes(self) -> Mapping[str, list[list[Claim]]]:
        """The measurements of each claim, by what the claim comes out like."""
        found: dict[str, list[list[Claim]]] = {HOLDS: [], FAILS: [], UNMEASURED: []}
        for each in self._by_claim().values():
            found[_worst(each).outcome].append(each)
        return found

    def _counts(self) -> str:
        """Say how many claims hold, in how many measurements, and how many were not measured, or only in part."""
        kinds = self._outcomes()
        held, failed, left = (len(kinds[each]) for each in (HOLDS, FAILS, UNMEASURED))
        part = sum(_left(each) > 0 for each in (*kinds[HOLDS], *kinds[FAILS]))
        said = f"{held} of {held + failed} claims that were measured hold" if failed else "No claim was measured"
        if held and not failed:
            said = f"All {held} claims that were measured hold" if held > 1 else "The one claim that was measured holds"
        count = len(self.claims) - len(self.of(UNMEASURED))
        said += f", in {count} measurement{'s' * (count > 1)}" if count and not failed else ""
        said += f"; {left} {'was' if left == 1 else 'were'} not measured" if left else ""
        return said + (f"{',' if left else ';'} {part} only in part." if part else ".")

    def _by_claim(self) -> Mapping[tuple[str, str], list[Claim]]:
        found: dict[tuple[str, str], list[Claim]] = {}
        for each in self.claims:
            found.setdefault((each.area, each.said), []).append(each)
        return found


def check(
    model: Any,
    texts: str | Sequence[str] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Check:
    """Measure every claim of exactness of a model on this machine; a claim that fails is told, not raised.

    Args:
        model: as `regard.load` gives it, or what `regard.load` opens: a model of transformers, a folder, a name.
        texts: one or several to check it on, None for some of several kinds (or random ids, or a picture of noise).
        inputs: instead, one item of what else it reads, as `Model.trace` takes it.
        seed: of random ids and pictures.
        progress: told how many groups of claims are done.

    Raises:
        RegardError: there is no such model; it reads neither texts, ids nor pictures alone, or cannot read these texts.
    """
    model = model if isinstance(model, Model) else load(model)
    reads = [Read(model, each) for each in readings_of(model, texts, inputs, seed)]
    for each in reads:
        each.inputs  # noqa: B018 (texts that cannot be read are refused before anything is measured)
    steps, claims = list(_steps(model, reads)), list[Claim]()
    for number, step in enumerate(steps):
        if progress is not None:
            progress(number, len(steps))
        claims += step()
    where = f"torch {torch.__version__} on {model.model.device}, {torch.get_num_threads()} thread(s)"
    return Check(model.name, where, claims)


def _steps_of_pass(read: Read) -> Iterator[Step]:
    of = read.reading.name
    for area, said, measure in (
        ("attention", "weights are its own code's", passes.weights_are_its_own),
        ("states", "states are its own code's", passes.states_are_its_own),
        ("result", "results are a plain pass's", passes.result_is_its_own),
        ("embeddings", "embedding parts add up to the input", passes.parts_add_up_to_input),
    ):
        yield partial(measured, area, said, of, partial(measure, read))


def _steps(model: Model, reads: Sequence[Read]) -> Iterator[Step]:
    """Give the steps in order: each pass, padding, sums, changes, decoding, other devices and precisions."""
    for each in reads:
        yield from _steps_of_pass(each)
    first, longest = reads[0], max(reads, key=lambda each: _size(each.inputs))
    groups: list[tuple[str, str, str, Callable[..., Iterator[Claim]], tuple[Any, ...]]] = []
    for read in (first, longest)[: 1 + (longest is not first)]:
        of = read.reading.name
        groups += [
            ("statistics", "statistics are the matrix's", of, sums.statistics_are_of_the_weights, (read,)),
            ("contributions", "contributions add up to the vector", of, sums.contributions_add_up, (read,)),
            ("arithmetic", products.SAID, of, products.products_are_numpys, (read,)),
        ]
    if first.reading.of_tokens:
        text, batch, left = changing.Changing(first), passes.batch_is_as_alone, passes.left_padding_is_its_own
        groups += [
            ("attribution", "attribution adds up to the outcome", "", sums.attributions_add_up, (first,)),
            ("padding", "weights in a batch are those alone", "", batch, (model, reads)),
            ("padding", "weights padded on the left are its code's", "", left, (model, reads)),
            (changing.AREA, "results with heads ablated", "", changes.heads_are_ablated, (text,)),
            (changing.AREA, "results with edges ablated", "", changes.edges_are_ablated, (text,)),
            (changing.AREA, "results with states changed", "", changes.states_are_patched, (text,)),
            (changing.AREA, "results with attention patched", "", changes.attention_is_patched, (text,)),
            (changing.AREA, "results with feed_forward patched", "", changes.feed_forwards_are_patched, (text,)),
            ("decoding", "steps with a cache are one pass", "", decoding.decoding_is_one_pass, (first,)),
        ]
    for device, dtype in kinds.kinds(model):
        of = kinds.device_and_dtype(device, dtype)
        near = kinds.kind_is_as_near
        groups.append(("precision", "as near float64 as its own code", of, near, (first, device, dtype)))
    for area, said, of, measure, given in groups:
        yield partial(measured, area, said, of, partial(measure, *given))


def _size(inputs: Mapping[str, Any]) -> int:
    return max(each.numel() for each in inputs.values() if isinstance(each, torch.Tensor))


def _worst(claims: Sequence[Claim]) -> Claim:
    """The claim of several that fails, or is the nearest to its bound; one that was not measured where none was."""
    known = [each for each in claims if each.outcome != UNMEASURED]
    return max(known, key=_of_bound) if known else claims[0]


def _of_bound(claim: Claim) -> float:
    if claim.difference is None or claim.bound is None:
        return 0.0
    return claim.difference / claim.bound if claim.bound else float(claim.difference > 0) * torch.inf


def _left(claims: Sequence[Claim]) -> int:
    """Of the measurements of one claim, how many could not be made where others were; 0 where none was."""
    left = sum(each.outcome == UNMEASURED for each in claims)
    return left if left < len(claims) else 0


def _cells(claim: Claim, left: int = 0) -> list[str]:
    apart, bound, own = (_number(each) for each in (claim.difference, claim.bound, claim.own))
    if claim.total is not None:
        apart = f"{int(claim.difference or 0)} of {claim.total} tokens"
    outcome = claim.outcome + ", in part" * bool(left)
    return [claim.said, apart, bound, outcome, own, claim.of, claim.where or claim.reason]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"


def _named(claim: Claim) -> str:
    return claim.said + (f", {claim.of}" if claim.of else "")


def _told(claim: Claim) -> str:
    if claim.reason:
        return claim.reason.removesuffix(".")
    where = f" ({claim.where})" if claim.where else ""
    if claim.total is not None:
        return f"{int(claim.difference or 0)} of {claim.total} tokens differ where none may{where}"
    return f"{_number(claim.difference)} apart where {_number(claim.bound)} is allowed{where}"
