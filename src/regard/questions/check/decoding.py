"""Check a text that the model writes, token after token with a cache, against one pass over all of it."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.errors import RegardError
from regard.model_files.quiet import quiet
from regard.questions.check.claims import VECTORS, WEIGHTS, Claim, claim
from regard.questions.check.differences import distance, own_weights_apart, result_apart, weights_apart
from regard.questions.check.passes import Read
from regard.questions.check.readings import Reading

NEW = 8  # tokens that are written


def decoding_is_one_pass(read: Read) -> Iterator[Claim]:
    """Check weights and logits of steps with a cache against the model's own code on the whole text at once."""
    model, asked = read.model, read.reading.asked
    given: dict[str, Any] = {"ids": asked["ids"]} if "ids" in asked else {"prompt": asked["text"]}
    theirs: tuple[list[int], Tensor | None] | None = None
    for cache in ("dynamic", "static"):
        try:
            written = model.generate(**given, new_tokens=NEW, do_sample=False, cache=cache)
        except RegardError:
            if cache == "dynamic":
                raise
            continue  # a kind of cache that the family does not have
        sides = [[token.id for token in side.tokens] for side in written.trace.sides]
        whole: dict[str, Any] = {"ids": sides[0]} | ({"target_ids": sides[1]} if model.pairs else {})
        read.own  # noqa: B018 (a model without code of its own has nobody else to write)
        own, segments = theirs = theirs or _written_by_transformers(read, written.ids[: written.start])
        beside = {} if segments is None else {"token_type_ids": _as_long(segments, len(sides[0]))}
        once = Read(model, Reading("what was written", whole, beside))
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
        both = list(zip_longest(written.ids[written.start :], own))  # one may have ended before the other
        others = [n for n, pair in enumerate(both) if pair[0] != pair[1]]
        where, said = f"token {others[0]} of those written" if others else "", "tokens are those transformers writes"
        yield Claim("decoding", said, of, float(len(others)), 0.0, where=where, total=len(both))


def _written_by_transformers(read: Read, begun: Sequence[int]) -> tuple[list[int], Tensor | None]:
    """The tokens that transformers' own generate writes greedily, and the segments that it gives the model on its way.

    read: what it goes on from, as the model's own code is given it. begun: the ids that what is written begins with.
    Segments are None where its passes have none: some families leave them out of what they write.
    """
    model, inputs, passes = read.model, read.inputs, list[Tensor]()
    ids = inputs["input_ids"]
    own: dict[str, Any] = {"decoder_input_ids": ids.new_tensor([begun])} if model.pairs else {}
    if "token_type_ids" in inputs:
        own["token_type_ids"] = inputs["token_type_ids"]

    def keep(_module: nn.Module, _args: Any, given: dict[str, Any]) -> None:
        if given.get("token_type_ids") is not None:
            passes.append(given["token_type_ids"])

    seen = model.model.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        with quiet(), torch.no_grad():
            written = model.model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False, num_beams=1,
                **own,
            )  # fmt: skip
    finally:
        seen.remove()
    found: list[int] = written[0].tolist()[len(begun) :]
    return found, torch.cat(passes, 1) if passes else None


def _as_long(segments: Int[Tensor, "1 T"], size: int) -> Int[Tensor, "1 L"]:
    """Segments of so many tokens: the last token that is written is in the segment of the one before it."""
    return torch.cat([segments, segments[:, -1:].expand(-1, max(0, size - segments.shape[1]))], 1)[:, :size]
