"""Hold what a causal model wrote, and, where it was steered, what it wrote so beside it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import ClassVar

from regard.display.answer import Read, TracesAnswer
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.logits import names_of
from regard.generation.generator import Generated
from regard.questions.generate import panels as shown
from regard.questions.generate.panels import Writing, writing
from regard.text.tokens import Token, shortened
from regard.trace.trace import Trace

LONG = 60  # characters of a text in a title


@dataclass(frozen=True)
class Written:
    """A text that a model wrote: what it was given, what is new, the tokens of both, and how it was written."""

    given: str
    new: str
    tokens: Sequence[Token]
    how: Writing

    @property
    def text(self) -> str:
        """All of it."""
        return self.given + self.new


@dataclass(frozen=True, eq=False, repr=False)
class Generation(TracesAnswer):
    """What a model wrote. steered: what it wrote with its states pushed. push: how they were."""

    format: ClassVar[str] = "regard generate"
    findings = shown.generation_sentences
    panels = shown.generation_panels

    plain: Written
    steered: Written | None = None
    push: str = ""

    @property
    def each(self) -> list[tuple[str, Written]]:
        """What was written, by what it is called."""
        return [("plain", self.plain), *([] if self.steered is None else [("steered", self.steered)])]

    def title(self) -> str:
        """After which text it was written, and how it was steered."""
        return f"Text generated after {shortened(self.plain.given, LONG)}{'; ' if self.push else ''}{self.push}"

    def exactness(self) -> list[str]:
        """Say which probabilities are shown."""
        return ["Probabilities are the model's own, before temperature and top-k."]

    @property
    def parts_at(self) -> int | None:
        """The first written token that differs in the steered text, or that only one of the texts has."""
        both = [[written.tokens[each.token].id for each in written.how.tokens] for _, written in self.each]
        return next((n for n, (a, b) in enumerate(zip_longest(both[0], both[-1])) if a != b), None)

    def rows(self) -> list[Row]:
        """List one row a written token, in the text's order: how likely it was, and what else was likely there."""
        rows: list[Row] = []
        for name, written in self.each:
            for each in written.how.tokens:
                own: Row = {} if self.steered is None else {"written": name}
                own |= {"token": each.token, "text": each.text, "probability": each.probability, "rank": each.rank}
                other, chance = [*shown.others_likely_when_written(written, each), (None, None)][0]
                rows.append(own | {"likeliest_other": other, "its_probability": chance})
        return rows

    def data(self) -> dict[str, object]:
        """Say how the states were steered, and what was written, token by token."""
        return {
            "steering": self.push or None,
            "written": [
                {"called": name, "text": own.text, "new": own.new} | asdict(own.how) for name, own in self.each
            ],
        }

    def opening(self) -> dict[str, str | int | None]:
        """Open at the writing of the token that was least likely, of two texts where the sentences begin."""
        own = self.plain.how.tokens if self.steered is None else []
        least = min(own, key=lambda each: each.probability, default=None)
        return {"view": "generation", "token": None if least is None else least.token}


def generation(plain: Generated, steered: Generated | None = None, push: str = "") -> Generation:
    """Look at what a causal model wrote. steered: the same with its states pushed; push: how."""
    both, names = ([plain], None) if steered is None else ([plain, steered], ("plain", "steered"))
    about = Read.of(*(each.trace for each in both))
    second = None if steered is None else _generated_text_written(steered)
    return Generation(_generated_text_written(plain), second, push, traces=both, names=names, about=about)


def _generated_text_written(done: Generated) -> Written:
    trace = done.trace
    if not isinstance(trace, Trace):
        raise RegardError("generation: needs what a causal model wrote, given an encoder-decoder's target")
    found = writing(trace, done.start, done.ended, names_of(trace))
    return Written(done.text.removesuffix(done.new), done.new, trace.tokens, found)
