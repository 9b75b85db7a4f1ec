"""Put together the page of what was found, where it is no trace: of a store, of the heads, or of experiments.

Who holds an answer has imported what it is of: others do not wait for that.
"""

import sys
from typing import TYPE_CHECKING, Any

from regard.web.page import Page

if TYPE_CHECKING:  # of what traces do without
    from regard.corpus.asking.senses import Senses
    from regard.explain.causes.attribution import Attribution
    from regard.explain.causes.gradients import TokenAttribution
    from regard.explain.causes.patch_sweep import PatchSweep
    from regard.explain.causes.score_sources import ScoreSources
    from regard.explain.weights.head_means import HeadMeans

    Answer = Senses | HeadMeans | PatchSweep | Attribution | ScoreSources | TokenAttribution


ANSWERS = (
    ("regard.corpus.asking.senses", "Senses"),
    ("regard.explain.weights.head_means", "HeadMeans"),
    ("regard.explain.causes.patch_sweep", "PatchSweep"),
    ("regard.explain.causes.attribution", "Attribution"),
    ("regard.explain.causes.score_sources", "ScoreSources"),
    ("regard.explain.causes.gradients", "TokenAttribution"),
)


def is_answer(found: object) -> bool:
    """Whether there is a page of what was found, beside that of traces."""
    return any(_is(found, module, kind) for module, kind in ANSWERS)


def answer_page(found: object) -> Page | None:
    """Put together the page of an answer; None of anything else."""
    given: Any = found
    if _is(found, "regard.corpus.asking.senses", "Senses"):
        from regard.web.senses import senses_page

        return senses_page(given)
    if _is(found, "regard.explain.weights.head_means", "HeadMeans"):
        from regard.web.head_means import head_means_page

        return head_means_page(given)
    if _is(found, "regard.explain.causes.patch_sweep", "PatchSweep"):
        from regard.web.patch_sweep import sweep_page

        return sweep_page(given)
    if _is(found, "regard.explain.causes.attribution", "Attribution"):
        from regard.web.attribution import attribution_page

        return attribution_page(given)
    if _is(found, "regard.explain.causes.score_sources", "ScoreSources"):
        from regard.web.score_sources import score_page

        return score_page(given)
    if _is(found, "regard.explain.causes.gradients", "TokenAttribution"):
        from regard.web.gradients import gradients_page

        return gradients_page(given)
    return None


def _is(found: object, module: str, kind: str) -> bool:
    there: Any = sys.modules.get(module)
    return there is not None and isinstance(found, getattr(there, kind))
