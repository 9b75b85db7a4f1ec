"""Hold pairs of sentences against neutral sentences: does the text move the word where its sense is?

Two lists of ten pairs: pair n of the second says the same as pair n of the first in other words. No text has one of its
reference words. A pair is told right where each text moves the word towards a reference word of its own sense and
towards none of the other. Of the pairs of "bank" in the first list that are told right, the front page takes the one
whose weaker text leaves its range furthest; its pair in the second list confirms it, or does not.

Also: of neutral sentences that are not among those that come with the package, how many leave the range. Prints
Markdown: `python -m benchmarks.movement`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import regard
from regard.explain.texts.summary import Summary, summarise
from regard.models.control import trace_control
from regard.models.model import Model
from regard.questions.see.sentences import leaves_range
from regard.text.neutral_sentences import neutral_sentences
from regard.trace.trace import Trace

SENSES = {  # of each word: the reference words of the first text's sense, and of the second's
    "bank": (("river", "water"), ("money", "loan", "deposit")),
    "bat": (("cave", "bird", "wing"), ("ball", "club", "cricket")),
    "spring": (("summer", "flower", "season"), ("metal", "coil", "wire")),
    "mouse": (("rat", "cheese", "squirrel"), ("keyboard", "screen", "printer")),
    "plant": (("leaf", "flower", "tree"), ("factory", "machine", "mill")),
    "court": (("judge", "lawyer", "trial"), ("tennis", "ball", "basketball")),
}
ARTICLES = (
    "bank",
    "Write a poem about a man fishing on a river bank.",
    "Write a poem about a man withdrawing money from a bank.",
)
FIRST = (
    ("bank", "We sat on the grassy bank of the stream.", "I deposited my savings in the bank."),
    ("bank", "The fisherman stood on the muddy bank.", "The bank charged me a fee."),
    ("bank", "The flood washed away the bank.", "The bank refused to finance the house."),
    ("bank", "He swam to the other bank.", "She works as a cashier in a bank."),
    ("bank", "Write a poem about a man fishing on the bank.", "Write a poem about a man withdrawing cash from a bank."),
    ("bat", "A bat hung upside down from the ceiling.", "He swung the bat and missed."),
    ("spring", "The birds come back in spring.", "The spring in the mattress is broken."),
    ("mouse", "The cat chased a mouse.", "Click the left button of the mouse."),
    ("plant", "Water the plant every morning.", "The plant employs two hundred workers."),
    ("court", "The witness lied in court.", "The players left the court."),
)
SECOND = (
    ("bank", "They rested on the sandy bank of the creek.", "She put her wages into the bank."),
    ("bank", "An angler waited on the wet bank.", "My bank wants a higher fee."),
    ("bank", "The rising tide broke through the bank.", "The bank would not pay for the new roof."),
    ("bank", "She paddled over to the far bank.", "He is a clerk at the bank."),
    (
        "bank",
        "Tell a story about a boy wading near the bank.",
        "Tell a story about a boy opening an account at a bank.",
    ),
    ("bat", "The bat slept through the day in the attic.", "The batter dropped his bat and ran."),
    ("spring", "We sow the seeds early in spring.", "The clock is driven by a wound spring."),
    ("mouse", "A mouse squeaked under the floor.", "Plug the mouse into the computer."),
    ("plant", "The plant has withered in its pot.", "They closed the steel plant."),
    ("court", "He appealed to a higher court.", "She served from the back of the court."),
)
OTHERS = (  # neutral as well, and none of those that come with the package
    "They mentioned a {} in passing.",
    "He never told me about his {}.",
    "It has to do with the {}.",
    "I wonder whether the {} is still there.",
    "Does anybody remember a {}?",
    "That was before the {} was there.",
    "Her first thought was the {}.",
    "It was a question of the {}.",
    "He said that it was a {}.",
    "The other {} was just as good.",
    "Suddenly there was a {}.",
    "No {} is like another.",
    "I would rather not speak of the {}.",
    "You know which {} I mean.",
    "My friend showed me a {}.",
    "The {} came up again in the evening.",
    "It is hard to say what a {} is.",
    "Without the {} nothing would be the same.",
    "Two of us had seen the {} already.",
    "She smiled when she heard of the {}.",
)


@dataclass(frozen=True)
class Row:
    """A pair and what it does. beyond: of each text, how far it leaves the range towards its own sense, at most."""

    word: str
    texts: tuple[str, str]
    said: tuple[str, str]
    right: bool
    beyond: float


def measured(model: Model, word: str, texts: tuple[str, str], references: Sequence[Trace]) -> Row:
    traces = model.trace(list(texts), logits=False)
    seen = summarise(traces, word, references=references, control=trace_control(model, traces, word))
    said, furthest, right = [], [], True
    for label, own in zip("12", SENSES[word], strict=True):
        towards = [w for w, side in sides(seen, label).items() if side == "towards"]
        right = right and any(w in own for w in towards) and all(w in own for w in towards)
        over = [cosines(seen)[w, label] - next(n.high[-1] for n in seen.neutral if n.word == w) for w in own]
        furthest.append(max(over))
        said.append("; ".join(shown(seen, label)) or "in the neutral range")
    return Row(word, texts, (said[0], said[1]), right, min(furthest))


def sides(seen: Summary, label: str) -> dict[str, str | None]:
    own = [r for r in seen.references if r.occurrence == label]
    return {r.word: leaves_range(seen, label, r.word, r.last_hidden_state) for r in own}


def cosines(seen: Summary) -> dict[tuple[str, str], float]:
    return {(each.word, each.occurrence): each.last_hidden_state for each in seen.references}


def shown(seen: Summary, label: str) -> list[str]:
    neutral = {each.word: each for each in seen.neutral}
    found = []
    for word, side in sides(seen, label).items():
        if side is not None:
            mean = neutral[word].mean[-1]
            assert mean is not None
            found.append(f"{side} {word} {cosines(seen)[word, label] - mean:+.2f}")
    return found


def by_chance(model: Model, references: dict[str, Sequence[Trace]]) -> tuple[int, int]:
    """How many cosines of neutral sentences that are not the control's leave its range, and of how many."""
    outside = total = 0
    for word in SENSES:
        traces = model.trace(neutral_sentences(word, OTHERS), logits=False)
        seen = summarise(traces, word, references=references[word], control=trace_control(model, traces, word))
        outside += sum(
            leaves_range(seen, r.occurrence, r.word, r.last_hidden_state) is not None for r in seen.references
        )
        total += len(seen.references)
    return outside, total


def main() -> None:
    model = regard.load()
    references = {word: model.trace([*first, *second]) for word, (first, second) in SENSES.items()}
    outside, total = by_chance(model, references)
    print(f"Other neutral sentences: {outside} of {total} cosines leave the range ({outside / total:.0%}).\n")
    rows = {}
    for name, pairs in (("First list", FIRST), ("Second list", SECOND), ("The articles' pair", (ARTICLES,))):
        rows[name] = [measured(model, word, (a, b), references[word]) for word, a, b in pairs]
        right = sum(row.right for row in rows[name])
        print(f"## {name}: {right} of {len(rows[name])} told right\n\n| pair | against neutral sentences | right |")
        print("|---|---|---|")
        for row in rows[name]:
            verdict = f"yes ({row.beyond:.2f})" if row.right else "no"
            print(f"| {'<br>'.join(row.texts)} | {'<br>'.join(row.said)} | {verdict} |")
        print()
    both = zip(rows["First list"], rows["Second list"], strict=True)
    for row, other in sorted(both, key=lambda each: -each[0].beyond):
        if row.right and row.word == "bank":
            verdict = "which is told right as well" if other.right else "which is not"
            print(f"Chosen by the first list: {' / '.join(row.texts)}")
            print(f"In the second list: {' / '.join(other.texts)}, {verdict}")
            break
    else:
        print("None of the pairs of “bank” in the first list is told right.")


if __name__ == "__main__":
    main()
