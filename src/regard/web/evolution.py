"""The page of how attention formed in training: one head's panels, the traces of both ends, and the loss."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.explain.evolution import Evolution
from regard.explain.findings.evolution import evolution_findings
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import Choice, Opening, page_of
from regard.web.loss_curve import loss_panel
from regard.web.page import Page
from regard.web.panels import evolution_panels

if TYPE_CHECKING:
    from regard.explain.findings.training import Log


def evolution_page(
    watched: Sequence[tuple[int, Trace | PairTrace]],
    found: Evolution,
    choice: Choice | None = None,
    *,
    log: "Log" = (),
    smoothing: float = 0.0,
) -> Page:
    """Put the page together.

    watched: the traces by step; the first and the last can be looked at. found: what they show of one head. log: the
    run's, whose losses are a curve. smoothing: of the labels, in the loss.

    Raises:
        RegardError: as `page_of`.
    """
    ends = [watched[0], watched[-1]] if len(watched) > 1 else list(watched)
    page = page_of(
        [trace for _, trace in ends],
        choice,
        Opening("panel 0", found.layer, found.head),
        names=[f"step {step}" for step, _ in ends],
        title=found.title,
        findings=evolution_findings(found),
    )
    page.panels += evolution_panels(found)
    if log:
        page.panels.append(logged_loss(log, smoothing=smoothing))
    return page


def logged_loss(log: "Log", *, smoothing: float = 0.0) -> dict[str, object]:
    """Write the loss curve of a run's log. smoothing: of the labels, in the loss."""
    known = [(int(each["step"] or 0), float("nan") if each["loss"] is None else each["loss"]) for each in log]
    held = [(int(each["step"] or 0), each["validation"]) for each in log if each["validation"] is not None]
    return loss_panel([step for step, _ in known], [loss for _, loss in known], held, smoothing=smoothing)
