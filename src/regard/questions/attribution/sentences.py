"""Say in sentences what contributes most to an outcome: components, tokens or heads."""

import re
from typing import TYPE_CHECKING, Any

from regard.display.panels import decimals
from regard.display.sentences import Template, sentences
from regard.explain.wording import number, quoted, signed

if TYPE_CHECKING:
    from regard.questions.attribution.direct import Attribution
    from regard.questions.attribution.heads import HeadAttribution
    from regard.questions.attribution.tokens import TokenAttribution

MIN_PART_OF_LARGEST = 0.05  # of the largest contribution: sentences name no smaller one

TABLE: list[list[Template]] = [
    [("The scores sum to {sum} instead of {due}, so don't trust single scores. Try more steps.", None)],
    [
        ("The largest contribution to the {outcome} ({value}) is {most_adds}, from {most}.", None),
        ("The largest reduction of the {outcome} ({value}) is {least_adds}, from {least}.", None),
        ("Every contribution to the {outcome} ({value}) is 0.", None),
    ],
    [("Among heads, {heads}.", None), ("The largest reduction is {least_adds}, from {least}.", lambda n: "most" in n)],
    [("Summed over heads, {tokens}.", None)],
    [("In {top_head}, attention to {source} contributes most: {source_adds}.", None)],
    [("If the baseline embedding replaces every token, the outcome is {baseline}.", None)],
]


def of_parts(result: "Attribution") -> list[str]:
    """Say which component, head and source token contribute most."""
    parts, sources = result.by(), result.by("source", words=result.unit == "word")
    numbers = _ends(parts) | {"outcome": result.outcome, "value": plain(result.value)}
    if "head " not in numbers.get("most", ""):
        numbers["heads"] = _ends([part for part in parts if "head " in part[0]])["clauses"]
    tokens = [(f"attention to {source_token(name)}", value) for name, value in sources if "attention from " in name]
    return sentences(TABLE, numbers | {"tokens": _ends(tokens)["clauses"]})


def of_tokens(result: "TokenAttribution") -> list[str]:
    """Say which token or word contributes most, after a warning if the scores miss their sum."""
    numbers = _ends(result.by(result.unit)) | {"outcome": result.outcome_name, "value": plain(result.outcome)}
    if result.baseline is not None:
        numbers["baseline"] = plain(result.baseline, result.outcome)
        if result.misses_its_sum:
            numbers |= {"sum": plain(float(result.scores.sum())), "due": plain(result.outcome - result.baseline)}
    return sentences(TABLE, numbers)


def of_heads(result: "HeadAttribution") -> list[str]:
    """Say which head contributes most, and from which token it takes most."""
    numbers = _ends(result.by()) | {"outcome": result.outcome_name, "value": plain(result.outcome)}
    call, head, _ = max(result.best(sum(map(len, result.scores))), key=lambda best: best[2])
    if "most" in numbers:
        row = result.calls.index(call)
        values, tokens = result.sources[row][head].tolist(), result.tokens[row]
        top = values.index(max(values))
        numbers |= {"top_head": numbers["most"], "source": f"{quoted(tokens[top].text)} ({top})"}
        numbers["source_adds"] = signed(values[top], f".{decimals(values)}f")
    return sentences(TABLE, numbers)


def source_token(name: str) -> str:
    """Return the source token in a component's name, with its stack: “run” (2) of the encoder."""
    token = name.partition("attention from ")[2]
    return token.replace(" of the decoder", " of the encoder") if name.startswith("cross-") else token


def plain(value: float, *others: float) -> str:
    """Write an outcome, which is no fraction, with two decimals, or more if it and the others are small."""
    return number(value, f".{decimals([value, *others])}f")


def _ends(parts: list[tuple[str, float]]) -> dict[str, Any]:
    """Return the largest contribution and reduction, unless they are small. parts: largest absolute first."""
    numbers: dict[str, Any] = {}
    clauses, form = [], f".{decimals(value for _, value in parts)}f"
    for key, sign, verb in (("most", 1, "contributes most"), ("least", -1, "reduces the outcome most")):
        name, value = next((part for part in parts if part[1] * sign > 0), ("", 0.0))
        if name and abs(value) >= MIN_PART_OF_LARGEST * abs(parts[0][1]):
            name = re.sub(r"layer (\d+), (feed-forward|biases)", r"the \2 of layer \1", name)
            name = re.sub(r"(^\w+ embedding|^biases )", r"the \1", name).replace("forward of", "forward block of")
            numbers |= {key: name, f"{key}_adds": signed(value, form)}
            clauses.append(f"{name} {verb} ({signed(value, form)})")
    return numbers | {"clauses": " and ".join(clauses) or None}
