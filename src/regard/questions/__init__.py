"""Ask: a room for each question, with what may be asked, its answer, its sentences and its panels."""

# of a request's kind, most often a verb: what it does, and the dataclass of what may be asked, which imports no torch
QUESTIONS = {
    "attribute": (
        "Split what made a next token, or how near two words are.",
        "regard.questions.attribution.asked:AttributionAsked",
    ),
    "heads": (
        "Show what every head's attention follows, in texts and in tests.",
        "regard.questions.heads.asked:HeadsAsked",
    ),
    "patch": (
        "Put what one text's run had into another's; measure the change.",
        "regard.questions.patch.asked:PatchAsked",
    ),
    "score": (  # `regard why --edge`
        "Split one attention score: why a head looks there.",
        "regard.questions.score.asked:ScoreAsked",
    ),
}
