"""Put together the page of what was found, where it is no trace: of a store, of the heads, or of experiments.

Who holds an answer has imported what it is of: others do not wait for that.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from regard.errors import RegardError
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import LIMIT, Choice, Opening, page_of
from regard.web.join_pages import add_panels
from regard.web.page import HasPage, Page

if TYPE_CHECKING:  # of what traces do without
    from regard.corpus.asking.senses import Senses
    from regard.explain.weights.head_means import HeadMeans

    Answer: TypeAlias = HasPage | Senses | HeadMeans


ANSWERS = (  # what has a page, and what puts it together
    ("regard.corpus.asking.senses", "Senses", "regard.web.senses", "senses_page"),
    ("regard.explain.weights.head_means", "HeadMeans", "regard.questions.heads.answer", "page_of_means"),
)


def is_answer(found: object) -> bool:
    """Whether there is a page of what was found, beside that of traces."""
    return isinstance(found, HasPage) or any(_is(found, module, kind) for module, kind, _, _ in ANSWERS)


def answer_page(found: object) -> Page | None:
    """Put together the page of an answer; None of anything else."""
    if isinstance(found, HasPage):
        return found.page()
    for module, kind, room, function in ANSWERS:
        if _is(found, module, kind):
            make = getattr(importlib.import_module(room), function)
            return make(found)
    return None


def page_of_answer(found: object) -> Page:
    """Put together the page of an answer. Raises RegardError for what has none."""
    page = answer_page(found)
    if page is None:
        raise RegardError(f"page: given {type(found).__name__}, which has no page of its own")
    return page


def page_beside(
    found: object, traces: Sequence[Trace | PairTrace], choice: Choice, opening: Opening, limit: int | None = LIMIT
) -> Page:
    """Put together the page of an answer with the attention of its texts, which opens at the answer.

    choice, opening, limit: as of `page_of`. Raises RegardError for what has no page, and what `page_of` raises.
    """
    own = page_of_answer(found)
    page = page_of(traces, choice, opening, title=own.title, findings=own.findings, limit=limit)
    page.opening["view"] = f"panel {len(page.panels)}"
    add_panels(page, [own], sentences=False)
    return page


def _is(found: object, module: str, kind: str) -> bool:
    there: Any = sys.modules.get(module)
    return there is not None and isinstance(found, getattr(there, kind))
