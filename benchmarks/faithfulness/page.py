"""Write docs/faithfulness.md from what was measured: every number on it comes from here."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faithfulness import scores, tables
from benchmarks.faithfulness.cases import LEAST_SOURCES, REFERENCES
from benchmarks.faithfulness.measure import OWN_EDGES, REMOVAL, Data, column
from benchmarks.faithfulness.texts import LONGEST, SEED, SHORTEST
from regard.files import whole

TEMPLATE = Path(__file__).parent / "page.md"
PAGE = Path(__file__).parent.parent.parent / "docs" / "faithfulness.md"
SHARE = "contribution, share"
WEIGHT = "attention weight, mean of layers"


def write(models: Sequence[Data]) -> None:
    """Write the page."""
    with whole(PAGE) as temporary:
        temporary.write_text(text(models), encoding="utf-8")


def text(models: Sequence[Data]) -> str:
    """The page: the numbers and tables in the places that page.md has for them."""
    return TEMPLATE.read_text(encoding="utf-8").format(
        winners=_winners(models),
        main_table=tables.main_table(models),
        counts=", ".join(f"{len(each['texts'])} of {each['model']}" for each in models),
        reading=_reading(models),
        shortest=SHORTEST,
        longest=LONGEST,
        sentences=models[0]["sentences"],
        seed=SEED,
        least_sources=LEAST_SOURCES,
        median_sources=_median_sources(models),
        references=REFERENCES,
        parts=", ".join(f"{part:.0%}" for part in scores.PARTS),
        removal=REMOVAL,
        own_edges=OWN_EDGES,
        model_sections=_model_sections(models).rstrip(),
        other_truths=tables.other_truths(models),
        edges_range=_range(models, OWN_EDGES),
        replaced=_replaced(models),
        machine=models[0]["machine"].split(", load")[0],
        runs=_runs(models),
    )


def _winners(models: Sequence[Data]) -> str:
    """Which method predicts best, of each outcome, and by how much it is ahead of the next."""
    known, said = {each["model"]: each for each in models}, []
    for heading, model, score in tables.COLUMNS:
        means = {name: tables.mean(known[model], name, score) for name in tables.PREDICTED}
        first, second = sorted(means, key=lambda name, means=means: -means[name])[:2]
        both = [column(known[model]["texts"], name, score) for name in (first, second)]
        gap, low, high = scores.ahead(both[0], both[1])
        sure = "" if low > 0 else ", possibly by chance"
        said.append(
            f"- {heading}: **{first}** ({means[first]:.2f}), ahead of *{second}* by "
            f"{gap:.2f} [{low:.2f}, {high:.2f}]{sure}"
        )
    return "\n".join(said)


def _reading(models: Sequence[Data]) -> str:
    """What weights and contributions are worth, and which method knows the sign, in sentences."""
    signed = [name for name in tables.PREDICTED if name not in tables.UNSIGNED]
    best = []
    for each in models:
        means = {name: tables.mean(each, name, "signed") for name in signed}
        first, second = sorted(means, key=lambda name, means=means: -means[name])[:2]
        best.append(f"for {each['model']} *{first}* ({means[first]:.2f}, then *{second}* at {means[second]:.2f})")
    return (
        "The rank correlation of mean attention weights (over layers and heads) with the effect of removal is "
        f"{_range(models, WEIGHT)}. regard's contributions reach {_range(models, SHARE)}, and a random order reaches "
        f"{_range(models, 'random order')}.\n"
        f"For the direction of a word's effect, the methods with the highest signed correlation are: {', '.join(best)}."
    )


def _range(models: Sequence[Data], method: str) -> str:
    """The rank correlation of a method, of each model."""
    return ", ".join(f"{tables.mean(each, method, 'absolute'):.2f} ({each['model']})" for each in models)


def _replaced(models: Sequence[Data]) -> str:
    """How both measured rankings agree with the second truth."""
    pairs = [[tables.mean(each, name, "replaced") for name in (REMOVAL, OWN_EDGES)] for each in models]
    parts = [
        f"{removed:.2f} and {cut:.2f} ({each['model']})" for each, (removed, cut) in zip(models, pairs, strict=True)
    ]
    return ", ".join(parts)


def _median_sources(models: Sequence[Data]) -> str:
    counts = [
        f"{statistics.median(sum(not source[3] for source in each['sources']) for each in model['texts']):.0f} for "
        f"{model['model']}"
        for model in models
    ]
    return ", ".join(counts)


def _model_sections(models: Sequence[Data]) -> str:
    """A section for each model."""
    sections = []
    for each in models:
        mean = {name: scores.interval([one[name] for one in each["texts"]])[0] for name in ("whole", "nothing")}
        what = "cosine" if tables.UNITS[each["model"]] == "cosine" else "log-probability"
        rises = mean["nothing"] > mean["whole"]
        context = " Context can move a word away from its usual meaning, so areas can be negative." if rises else ""
        sections.append(
            f"## {each['model']}\n\nThe outcome ({what}) is {mean['whole']:.2f} on average, and {mean['nothing']:.2f} "
            f"with all words removed.{context}\n\n{tables.model_table(each)}\n\n"
        )
    return "".join(sections)


def _runs(models: Sequence[Data]) -> str:
    return ", ".join(f"{sum(one['runs'] for one in each['texts'])} of {each['model']}" for each in models)
