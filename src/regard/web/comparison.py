"""Write which calls stand side by side: of two texts of the same tokens, such as before and after an ablation."""

from regard.trace.layer_subset import CallNumber
from regard.trace.trace import Trace
from regard.web.score_rules import Data


def comparison_data(name: str, before: dict[CallNumber, int], after: dict[CallNumber, int]) -> Data | None:
    """Write the calls that both texts have; None without any. before, after: their calls by (layer, which of its)."""
    both = [call for call in before if call in after]
    if not both:
        return None
    return {"name": name, "before": [before[call] for call in both], "after": [after[call] for call in both]}


def comparable(before: Trace, after: Trace) -> bool:
    """Whether two traces are of the same tokens."""
    return len(before.tokens) > 0 and [t.id for t in before.tokens] == [t.id for t in after.tokens]


def comparison_name(before: Trace, after: Trace, names: tuple[str, str]) -> str:
    """What a comparison is called: by what was done to the second pass alone, or by the names of the texts."""
    done = [note for note in after.status.notes if note not in before.status.notes]
    if done and not set(before.status.notes) - set(after.status.notes):
        return f"before and after: {'; '.join(done)}"
    if before.status.model != after.status.model:
        return f"{before.status.model} and {after.status.model}"
    return " and ".join(names)
