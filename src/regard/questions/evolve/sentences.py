"""State in a few sentences how attention formed in training: how sharp, when, and between which tokens."""

from typing import TYPE_CHECKING

from regard.explain.wording import as_among, number, quoted, short_head

if TYPE_CHECKING:
    from regard.questions.evolve.answer import Evolution

SAME = 0.05  # entropies in nats that differ by less are called about equal
GREW = 0.05  # weights that changed by less are not worth a word

Cell = tuple[int, int]  # a query and a key


def of_evolution(found: "Evolution") -> list[str]:
    """Compose the sentences; of one step alone, what there is to say of it."""
    about = (_induction, _sharper, _strongest, _fell, _when, _moved)
    return [sentence for sentence in (each(found) for each in about) if sentence]


def of_change(found: "Evolution") -> str:
    """Say of all weights which one differs most between the first and the last step."""
    spot = found.most_changed()
    if spot is None:
        return "no weight changed"
    i, j = spot
    before, after = (f"{number(found.weights[n][i][j])} at step {found.steps[n]}" for n in (0, -1))
    return f"most changed: {_pair(found, spot)}, {before}, {after}"


def _pair(found: "Evolution", cell: Cell) -> str:
    i, j = cell
    at = "itself" if i == j and found.queries == found.keys else quoted(found.keys[j])
    number_of = f" ({i})" if found.queries.count(found.queries[i]) > 1 else ""
    key_of = f" ({j})" if at != "itself" and found.keys.count(found.keys[j]) > 1 else ""
    return f"{quoted(found.queries[i])}{number_of} looks at {at}{key_of}"


def _induction(found: "Evolution") -> str:
    """Which head attends by induction, and from which step on; of a text that repeats, that none does."""
    best = found.induction_head()
    if best is None:
        return ""
    scores, n = found.induction_of(*best), found.formed(*best)
    name, last = f"head {short_head(*best)}", number(scores[-1])
    gives = "what came behind a token's earlier occurrences"
    if n is None:
        if not repeats(found.queries):
            return ""
        return f"No head attends by induction at step {found.steps[-1]}: most gives {name}, {last} to {gives}."
    if n == 0:
        when = "" if len(found.steps) == 1 else f" from step {found.steps[0]} on"
        return f"{name[:1].upper()}{name[1:]} attends by induction{when}: it gives {last} to {gives}."
    return (
        f"Induction formed by step {found.steps[n]}: {name} gives {number(scores[n])} to {gives}, at step "
        f"{found.steps[n - 1]} it gave {number(scores[n - 1])}; at step {found.steps[-1]} {last}."
    )


def repeats(names: list[str]) -> bool:
    """Whether a text is its beginning over and over."""
    every = range(1, len(names) // 2 + 1)
    return any(all(a == b for a, b in zip(names, names[period:], strict=False)) for period in every)


def _sharper(found: "Evolution") -> str:
    """Whether attention became sharper or broader."""
    first, last = found.entropy[0], found.entropy[-1]
    among = f"as equal weights over {as_among(last)} tokens would (e to the entropy, mean over the tokens)"
    if len(found.steps) == 1:
        return f"At step {found.steps[0]} a token spreads its attention {among}."
    start = f"at step {found.steps[0]} over {as_among(first)}"
    if abs(first - last) < SAME:
        return f"At step {found.steps[-1]} a token spreads its attention {among}, about as at step {found.steps[0]}."
    how = "sharper" if last < first else "broader"
    return f"Attention became {how}: at step {found.steps[-1]} a token spreads it {among}; {start}."


def _strongest(found: "Evolution") -> str:
    """The link that grew most, or the strongest of one step."""
    if len(found.steps) == 1:
        value, cell = found.strongest(0)
        alone = ", of tokens that may look at more than one" if len(found.free_queries) < len(found.queries) else ""
        return f"The largest weight{alone}: {_pair(found, cell)} ({number(value)})."
    change, i, j = max(
        (found.weights[-1][i][j] - found.weights[0][i][j], i, j)
        for i in found.free_queries
        for j in range(len(found.keys))
    )
    if change < GREW:
        return f"No link between two tokens grew by {GREW} or more."
    before, after = found.weights[0][i][j], found.weights[-1][i][j]
    return (
        f"What grew most: {_pair(found, (i, j))} with {number(after)}, at step {found.steps[0]} with {number(before)}."
    )


def _fell(found: "Evolution") -> str:
    """The link that lost most."""
    if len(found.steps) == 1:
        return ""
    change, i, j = min(
        (found.weights[-1][i][j] - found.weights[0][i][j], i, j)
        for i in found.free_queries
        for j in range(len(found.keys))
    )
    if change > -GREW:
        return ""
    before, after = found.weights[0][i][j], found.weights[-1][i][j]
    return (
        f"What fell most: {_pair(found, (i, j))} with {number(after)}, at step {found.steps[0]} with {number(before)}."
    )


def _when(found: "Evolution") -> str:
    """Between which steps weights changed most, and by when half of all changes were made."""
    total = sum(found.change)
    if len(found.steps) < 3 or not total > 0:
        return "" if total > 0 or len(found.steps) < 2 else "No weight changed at all."
    most = max(range(1, len(found.steps)), key=lambda n: found.change[n])
    made, half = 0.0, 0
    while made < total / 2:
        half += 1
        made += found.change[half]
    share = found.change[most] / total
    return (
        f"It changed most between steps {found.steps[most - 1]} and {found.steps[most]} ({share:.0%} of all change); "
        f"half of all was done by step {found.steps[half]} of {found.steps[-1]}."
    )


def _moved(found: "Evolution") -> str:
    """Whose learned embedding ended furthest from where it began, on the plane."""
    if len(found.steps) < 2 or not found.paths:
        return ""
    length, place = max(
        (((path[-1][0] - path[0][0]) ** 2 + (path[-1][1] - path[0][1]) ** 2) ** 0.5, n)
        for n, path in enumerate(found.paths)
    )
    if not length > 0 or len(found.paths) < 2:
        return ""
    kept = sum(found.share)
    return (
        f"Of the learned embeddings that of {quoted(found.embedded[place])} ended furthest from its start, on the "
        f"plane that keeps {kept:.0%} of their variance."
    )
