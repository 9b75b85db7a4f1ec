"""Remove a word from a run: no token may look at it, in any layer and head, so that nothing of it reaches another.

    model.trace(text, interventions=removal(trace, "river"))

Its edges are left out of every softmax, and what is left shares their weight; the text keeps its length and positions.
A word of the text that an encoder-decoder reads is hidden from the encoder's tokens and from the decoder's, a word of
the target from the decoder's. What comes of it is the truth that explanations are held against in docs/faithfulness.md:
an edge of one word alone, ablated, leaves the ways through other words open.
"""

from regard.capture.interventions.names import STACKS, Ablate, Part, ablate, edge
from regard.errors import RegardError
from regard.explain.places import Place, tokens_of
from regard.text.words import Word
from regard.trace.trace import PairTrace, Trace


def removal(trace: Trace | PairTrace, place: Place, *, part: Part | None = None) -> list[Ablate]:
    """Return what to ablate so that nothing of a word or token reaches any other.

    place: a word that occurs once, an occurrence, or a token's number. part: of an encoder-decoder, whose text it is
    of, the "encoder"'s or the "decoder"'s.
    """
    if isinstance(trace, Trace) and part is None:
        return [_removal_from_keys(trace, trace, place, None)]
    if isinstance(trace, PairTrace) and part == "encoder":
        source = trace.encoder
        return [
            _removal_from_keys(source, source, place, "encoder"),
            _removal_from_keys(trace.decoder, source, place, "cross"),
        ]
    if isinstance(trace, PairTrace) and part == "decoder":
        return [_removal_from_keys(trace.decoder, trace.decoder, place, "decoder")]
    if isinstance(trace, (Trace, PairTrace)):
        ways = " or ".join(map(repr, STACKS))
        needs = ways if isinstance(trace, PairTrace) else "none: it is not an encoder-decoder"
        raise RegardError(f"removal: part: given {part!r}, {trace.sides[0].status.model} needs {needs}")
    raise RegardError(f"removal: given {type(trace).__name__}, needs the trace of a text, or of a text and its target")


def _removal_from_keys(queries: Trace, keys: Trace, place: Place, part: Part | None) -> Ablate:
    """Hide some tokens of one text from all of one (also from themselves: nothing else sees what they then are)."""
    tokens = tuple(tokens_of(keys, place))
    name = place.text if isinstance(place, Word) else place if isinstance(place, str) else keys.tokens[tokens[0]].text
    everyone = Word("every token", 0, 0, tuple(range(len(queries.tokens))))
    return ablate(edge(everyone, Word(name, 0, 0, tokens), part=part))
