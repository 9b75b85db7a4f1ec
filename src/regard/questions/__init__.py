"""Ask: a room for each question, with what may be asked, its answer, its sentences and its panels."""

# of a request's kind, most often a verb: what it does, and the dataclass of what may be asked, which imports no torch
QUESTIONS = {
    "attribute": (
        "Attribute a next token or a similarity to components.",
        "regard.questions.attribution.asked:AttributionAsked",
    ),
    "heads": (
        "Score each head's attention patterns, in texts and tests.",
        "regard.questions.heads.asked:HeadsAsked",
    ),
    "patch": (
        "Patch activations between two texts and measure the effect.",
        "regard.questions.patch.asked:PatchAsked",
    ),
    "score": (  # `regard why --edge`
        "Split one attention score: why a head looks there.",
        "regard.questions.score.asked:ScoreAsked",
    ),
}
