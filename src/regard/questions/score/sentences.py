"""Write the sentences of `regard why --edge`: which components set a score apart from the mean score."""

from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import exactly_split, quoted

if TYPE_CHECKING:
    from regard.questions.score.sources import ScoreSources

LEAST_SHARE = 0.1  # of the sum of absolute values, that makes a pair more than one among many

TABLE: list[list[Template]] = [
    [
        ("{query} can attend only to {key} in {place} (weight {weight}).", lambda n: n["seen"] == 1),
        ("{query} attends to {key} in {place} with weight {weight}: the score is {apart:n} {side} the mean of "
         "{seen} tokens.", None),
    ],
    [
        ("No pair of components moves the score from the mean.", lambda n: n.get("share") == 0),
        ("The largest pair is {query_of_pair} of {query} with {key_of_pair} of {key} ({pair_score:+}).",
         lambda n: n["share"] >= LEAST_SHARE),
        ("No single pair explains this: the largest of {pairs} has {share:%} of the sum of absolute values.", None),
    ],
    [
        ("The largest components are {query_part} of {query} ({query_sum:+}) and {key_part} of {key} "
         "({key_sum:+}).",
         lambda n: n["share"] > 0 and (n["query_of_pair"], n["key_of_pair"]) != (n["query_part"], n["key_part"])),
    ],
]  # fmt: skip


def of_score(answer: "ScoreSources") -> list[str]:
    """Write the score, its strongest pair, and the strongest component of each side."""
    apart = answer.beside_the_others()
    where = f"{'cross-attention of ' * (answer.part == 'cross')}layer {answer.layer}, head {answer.head}"
    numbers: dict[str, Any] = {
        "query": quoted(answer.query), "key": quoted(answer.key), "place": where, "weight": answer.weight,
        "seen": answer.seen, "apart": abs(apart.score), "side": "above" if apart.score >= 0 else "below",
    }  # fmt: skip
    if answer.seen > 1:
        *_, scores = apart.table()
        (pair,), total = apart.top(1), float(scores.abs().sum())
        numbers |= {"pairs": scores.numel(), "share": abs(pair.score) / total if total else 0.0}
        numbers |= {"query_of_pair": pair.query, "key_of_pair": pair.key, "pair_score": pair.score}
        for side in ("query", "key"):
            numbers[f"{side}_part"], numbers[f"{side}_sum"] = apart.side(side)[0]
    return sentences(TABLE, numbers)


def exactness_of_score(answer: "ScoreSources") -> list[str]:
    """Say how exactly the pairs sum to the score."""
    return [exactly_split("pairs", "score", answer.error)]
