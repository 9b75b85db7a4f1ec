"""Ask: a room for each question, with what may be asked, its answer, its sentences and its panels."""

# verb: what it does, in a list of all, and the dataclass of what may be asked, which imports no torch
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
        "Put what one text's run had into another's, and measure it.",
        "regard.questions.patch.asked:PatchAsked",
    ),
}
