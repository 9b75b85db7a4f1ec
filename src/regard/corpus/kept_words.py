"""Say which of the words that `--where` was to keep do not stand in the texts: a store of none of them has no rows."""

import os

from regard.corpus.settings import Where
from regard.corpus.store_tables import StoreTables
from regard.explain.wording import listed

MOST_SHOWN = 8  # words that are named


def missing_words(store: str | os.PathLike[str], where: Where | None) -> str:
    """Name the words that a store was to keep and of which it has no row; empty where each has one.

    Raises:
        RegardError: it is no store, or not a whole one.
    """
    if where is None:
        return ""
    with StoreTables(os.fspath(store)) as tables:
        found = tables.distinct(where.field)
    missing = [value for value in where.values if value not in found]
    if not missing:
        return ""
    named = listed([repr(each) for each in missing[:MOST_SHOWN]])
    more = f" and {len(missing) - MOST_SHOWN:,} more" if len(missing) > MOST_SHOWN else ""
    rest = ": the store has no rows" if not found else ""
    return f"--where: no {where.field} {named}{more} in the texts{rest}"
