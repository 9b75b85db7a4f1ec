"""Say in sentences what the plane of a word's path is, what near and far mean on it, and what is not on it."""

from regard.explain.vectors.movement import LeftOut, Movement
from regard.views.terminal.layout import short, visible


def agreement(moved: Movement) -> str | None:
    """Say that near on the plane is near in all dimensions, or what is otherwise; None where nothing is compared."""
    if moved.disagreement is not None:
        return f"Not to be read off as it stands: {visible(moved.disagreement)}"
    if not moved.compared:
        return None
    which = "Seen from each ★ and from each ◆" if moved.fitted else "Of a path's states and its start"
    which += ", and two ★" if not moved.fitted and sum(path is not None for path in moved.words) > 2 else ""
    return f"{which}: nearer here is nearer in all {moved.width} dimensions (has the larger cosine)"


def axes_sentence(word: str, moved: Movement) -> str:
    """Say which plane it is, and how much of the variance it keeps."""
    quoted = f"“{short(word)}”"
    whose = (
        f"the final states of {', '.join(map(short, moved.fitted))} and {quoted}"
        if moved.fitted
        else f"all states of {quoted}"
    )
    share = " + ".join(f"{part:.0%}" for part in moved.share)
    dots = "" if moved.fitted else "; dots: the texts' tokens at the end, whose distances may differ"
    return f"the plane through {whose}, each of length 1: {share} of their variance{dots}"


def not_drawn(moved: Movement) -> str | None:
    """Name what is not on the plane, and why; None where all of it is there. Tokens count where they are drawn."""
    out = [left_out(each) for each in moved.left_out if each.kind != "token" or not moved.fitted]
    if not out:
        return None
    return f"Not drawn, for massive activations (length of a state, × the median): {', '.join(out)}"


def left_out(each: LeftOut) -> str:
    """Name one of those, with its length."""
    where = {"token": f" in text {each.of}", "word": f" {each.of}", "reference": " as a text of its own"}[each.kind]
    return f"“{short(each.name)}”{where} ({each.times:.0f} ×)"
