"""State in a few sentences how attention formed in training: how sharp, when, and between which tokens."""

from typing import TYPE_CHECKING

from regard.explain.wording import as_among, capital, number, quoted, short_head
from regard.text.quoting import some_of

if TYPE_CHECKING:
    from regard.questions.evolve.answer import Evolution

SAME = 0.05  # entropies in nats that differ by less are called about equal
TIES = 3  # links that changed as much as another, and heads beside the first, that are named at most
GREW = 0.05  # weights that changed by less are not worth a word

Cell = tuple[int, int]  # a query and a key


def of_evolution(found: "Evolution") -> list[str]:
    """Compose the sentences; of one step alone, what there is to say of it."""
    about = (_induction, _sharper, _strongest, _fell, _when, _moved)
    return [sentence for sentence in (each(found) for each in about) if sentence]


def of_change(found: "Evolution") -> str:
    """Say of all weights which one differs most between the first and the last step, or that it is one of several."""
    spot = found.most_changed()
    if spot is None:
        return "no weight changed"
    changes = [number(abs(change)) for row in found.from_start(len(found.steps) - 1) for change in row]
    i, j = spot
    before, after = (f"{number(found.weights[n][i][j])} at step {found.steps[n]}" for n in (0, -1))
    alike = changes.count(number(abs(found.weights[-1][i][j] - found.weights[0][i][j]))) > 1
    return f"{'one of the ' * alike}most changed: {_pair(found, spot)}, {before}, {after}"


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
        return f"{capital(name)} attends by induction{when}: it gives {last} to {gives}.{_as_well(found, best)}"
    return (
        f"Induction formed by step {found.steps[n]}: {name} gives {number(scores[n])} to {gives}, at step "
        f"{found.steps[n - 1]} it gave {number(scores[n - 1])}; at step {found.steps[-1]} {last}."
        f"{_as_well(found, best)}"
    )


def _as_well(found: "Evolution", best: Cell) -> str:
    """The other heads that attend by induction at the last step, those with most first."""
    scores = {(i, j): score for i, row in enumerate(found.induction[-1]) for j, score in enumerate(row)}
    others = [each for each in scores if each != best and found.formed(*each) is not None]
    others.sort(key=lambda each: -scores[each])
    told = some_of([f"{short_head(*each)} ({number(scores[each])})" for each in others], TIES)
    return f" So do{'es' * (len(others) == 1)}, at step {found.steps[-1]}, {told}." if others else ""


def repeats(names: list[str]) -> bool:
    """Whether a text is its beginning over and over."""
    every = range(1, len(names) // 2 + 1)
    return any(all(a == b for a, b in zip(names, names[period:], strict=False)) for period in every)


def _sharper(found: "Evolution") -> str:
    """Whether attention became sharper or broader."""
    first, last = found.entropy[0], found.entropy[-1]
    among = f"as equal weights over {as_among(last)} tokens would (e to the entropy, mean over the tokens)"
    of = "" if found.what == "attention" else f"{found.what} of "
    where, when = f"In {of}{found.whose()},", f"at step {found.steps[-1]} a token spreads"
    if len(found.steps) == 1:
        return f"{where} {when} its attention {among}."
    start = f"at step {found.steps[0]} over {as_among(first)}"
    if abs(first - last) < SAME:
        return f"{where} {when} its attention {among}, about as at step {found.steps[0]}."
    how = "sharper" if last < first else "broader"
    return f"{where} attention became {how}: {when} it {among}; {start}."


def _strongest(found: "Evolution") -> str:
    """The link that grew most, or the strongest of one step."""
    if len(found.steps) == 1:
        value, cell = found.strongest(0)
        alone = ", of tokens that may look at more than one" if len(found.free_queries) < len(found.queries) else ""
        return f"The largest weight there{alone}: {_pair(found, cell)} ({number(value)})."
    return _most_changed(found, "grew", 1) or f"No link between two tokens grew there by {GREW} or more."


def _fell(found: "Evolution") -> str:
    """The link that lost most."""
    return "" if len(found.steps) == 1 else _most_changed(found, "fell", -1)


def _most_changed(found: "Evolution", did: str, sign: int) -> str:
    """The link that grew most (sign 1) or fell most (-1), and those that did as much, as numbers are shown."""
    changes = {
        (i, j): sign * (found.weights[-1][i][j] - found.weights[0][i][j])
        for i in found.free_queries
        for j in range(len(found.keys))
    }
    most, i, j = max((change, i, j) for (i, j), change in changes.items())
    if most < GREW:
        return ""
    others = [_pair(found, cell) for cell in changes if cell != (i, j) and number(changes[cell]) == number(most)]
    alike = f"; as much, {number(most)}: {some_of(others, TIES)}" if others else ""
    before, after = number(found.weights[0][i][j]), number(found.weights[-1][i][j])
    told = f"{_pair(found, (i, j))} with {after}, at step {found.steps[0]} with {before}"
    return f"What {did} most there: {told}{alike}."


def _when(found: "Evolution") -> str:
    """Between which steps weights changed most, and by when half of all changes were made."""
    total = sum(found.change)
    if len(found.steps) < 3 or not total > 0:
        return "" if total > 0 or len(found.steps) < 2 else "No weight there changed at all."
    most = max(range(1, len(found.steps)), key=lambda n: found.change[n])
    made, half = 0.0, 0
    while made < total / 2:
        half += 1
        made += found.change[half]
    share = found.change[most] / total
    return (
        f"The weights there changed most between steps {found.steps[most - 1]} and {found.steps[most]} ({share:.0%} of "
        f"all change); half of all was done by step {found.steps[half]} of {found.steps[-1]}."
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
