"""Say in sentences what an ablation changed: which tokens' contextual embeddings, and by how much."""

import torch

from regard.models.windows import WindowedTrace
from regard.text.quoting import quoted
from regard.trace.trace import PairTrace, Trace

MOST = 3  # tokens that are named
SAME = 1e-5  # of a vector's length: what rounding makes


def change_sentences(before: Trace | PairTrace | WindowedTrace, after: Trace | PairTrace | WindowedTrace) -> list[str]:
    """Compare a text's traces before and after; one sentence for each side or window in which anything was done."""
    if isinstance(before, WindowedTrace) and isinstance(after, WindowedTrace):
        pairs = zip(before.windows, after.windows, strict=True)
        return [line for n, both in enumerate(pairs) for line in _sentences(*both, f"window {n + 1}: ")]
    if isinstance(before, PairTrace) and isinstance(after, PairTrace):
        named = zip(before.sides, after.sides, ("source: ", "target: "), strict=True)
        return [line for one, other, name in named for line in _sentences(one, other, name)]
    assert isinstance(before, Trace)
    assert isinstance(after, Trace)
    return _sentences(before, after, "")


def _sentences(before: Trace, after: Trace, name: str) -> list[str]:
    done = "; ".join(note for note in after.status.notes if note not in before.status.notes)
    if [token.id for token in before.tokens] != [token.id for token in after.tokens]:
        return [f"{name}{done or 'after it'}: the model wrote “{after.text}” instead of “{before.text}”."]
    old, new = before.contextual.double(), after.contextual.double()
    apart = (new - old).norm(dim=-1) / old.norm(dim=-1).clamp_min(torch.finfo(torch.float64).tiny)
    if not len(apart) or float(apart.max()) < SAME:
        return [f"{name}{done}: no token leaves the last layer changed."] if done else []
    cosines = torch.cosine_similarity(old, new, dim=-1)
    order = [n for n in cosines.argsort().tolist() if apart[n] >= SAME][:MOST]
    named = [
        f"{quoted(before.tokens[n].text)} ({n}) leaves the last layer at cosine {cosines[n]:z.3f} to before"
        for n in order[:1]
    ]
    named += [f"{quoted(before.tokens[n].text)} ({n}) at {cosines[n]:z.3f}" for n in order[1:]]
    return [f"{name}{done}: {', '.join(named)}."]
