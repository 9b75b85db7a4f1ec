"""Check a text that the model writes, token after token with a cache, against one pass over all of it."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.model_files.quiet import quiet
from regard.questions.check.claims import VECTORS, WEIGHTS, Claim, claim
from regard.questions.check.differences import distance, own_weights_apart, result_apart, weights_apart
from regard.questions.check.passes import Read
from regard.questions.check.readings import Reading

if TYPE_CHECKING:
    from regard.models.model import Model

NEW = 8  # tokens that are written


def decoding_is_one_pass(read: Read) -> Iterator[Claim]:
    """Check weights and logits of steps with a cache against the model's own code on the whole text at once."""
    model, asked = read.model, read.reading.asked
    given: dict[str, Any] = {"ids": asked["ids"]} if "ids" in asked else {"prompt": asked["text"]}
    for cache in ("dynamic", "static"):
        try:
            written = model.generate(**given, new_tokens=NEW, do_sample=False, cache=cache)
        except RegardError:
            if cache == "dynamic":
                raise
            continue  # a kind of cache that the family does not have
        sides = [[token.id for token in side.tokens] for side in written.trace.sides]
        whole: dict[str, Any] = {"ids": sides[0]} | ({"target_ids": sides[1]} if model.pairs else {})
        once = Read(model, Reading("what was written", whole))
        if any(bool(each.triu(1).any()) for each in once.own.weights.get("decoder_" if model.pairs else "", ())):
            raise RegardError("its own code looks ahead in one pass: what is written token after token is no such pass")
        rounds = None if once.exact is None else own_weights_apart(once.own, once.exact)
        apart = weights_apart(written.trace, once.own)
        of = f"{len(written.ids) - written.start} tokens, {cache} cache"
        if apart is not None:
            said = "weights of steps are those of one pass"
            yield claim("decoding", said, of, apart, once.rounded(WEIGHTS), rounds, half=read.half)
        last = result_apart(written.trace, once.own)
        if last is not None:
            rounds = None if once.exact is None else distance(once.own.result[0], once.exact.result[0])
            said = "logits of steps are those of one pass"
            yield claim("decoding", said, of, last, once.rounded(VECTORS), rounds, half=read.half)
        own = _written_by_transformers(model, once, written.start)
        pairs = enumerate(zip_longest(written.ids[written.start :], own))  # one may have ended before the other
        others = [n for n, (ours, theirs) in pairs if ours != theirs]
        where = f"token {others[0]} of those written" if others else ""
        yield Claim("decoding", "tokens are those transformers writes", of, float(len(others)), 0.0, where=where)


def _written_by_transformers(model: "Model", once: Read, start: int) -> list[int]:
    """The tokens that transformers' own generate writes after the same beginning, greedily."""
    inputs = once.inputs
    ids = inputs["input_ids"] if model.pairs else inputs["input_ids"][:, :start]
    own: dict[str, Any] = {"decoder_input_ids": inputs["decoder_input_ids"][:, :start]} if model.pairs else {}
    with quiet(), torch.no_grad():
        written = model.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False, num_beams=1, **own
        )
    found: list[int] = written[0].tolist()[start:]
    return found
