"""Hold every step of a word's way through one head, and make it of a trace."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from regard.display.answer import IN_PYTHON, Read, TracesAnswer
from regard.display.panels import Panel
from regard.explain.frames import Row
from regard.explain.weights.attended import check_head, check_layer
from regard.explain.weights.head_steps import HeadSteps, head_steps
from regard.explain.weights.sinks import Sink, sinks
from regard.questions.steps import panels, sentences
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False, repr=False)
class Steps(TracesAnswer):
    """The steps of each token of a word. found: each one's number, with its record. tokens, sinks: of the text."""

    format: ClassVar[str] = "regard steps"
    findings = sentences.of_steps
    panels = panels.of_steps

    word: str
    layer: int
    head: int
    tokens: Sequence[Token]
    sinks: Sequence[Sink]
    found: Sequence[tuple[int, HeadSteps]]

    def title(self) -> str:
        """Which word, in which head."""
        return f"{quoted(self.word)} in layer {self.layer}, head {self.head}, step by step"

    def exactness(self) -> list[str]:
        """Say how far the weights of the records are from those of the trace."""
        error = max(record.error for _, record in self.found)
        return [f"These weights differ from the model's by at most {error:.1e}."]

    def rows(self) -> list[Row]:
        """One row a token of the word and a key: every number of the key, and its part of the context vector."""
        apart = {sink.token for sink in self.sinks}
        return [
            {
                "token": query, "key": n, "text": key.text, "special": key.special, "sink": n in apart,
                "product": float(record.products[n]), "scaled": float(record.scaled[n]),
                "capped": float(record.capped[n]), "bias": float(record.bias[n]),
                "score": None if record.scores[n].isinf() else float(record.scores[n]),
                "exponential": float(record.exponentials[n]), "weight": float(record.weights[n]),
                "of_context": float(given[n]),
            }
            for query, record, given in ((n, record, sentences.shares(record)) for n, record in self.found)
            for n, key in enumerate(self.tokens)
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Every number of every record, with the vectors; a score is null where the query may not look."""
        return {
            "text": self.about.texts[0][0],
            "tokens": [asdict(token) for token in self.tokens],
            "sinks": [asdict(sink) for sink in self.sinks],
            "layer": self.layer,
            "head": self.head,
            "queries": [
                {"token": n, **{each.name: getattr(record, each.name) for each in fields(record)}}
                for n, record in self.found
            ],
        }

    def shown(
        self, width: int, top: int = 0, more: str = IN_PYTHON, *, everything: bool = False
    ) -> "list[RenderableType]":
        """As every answer, but with all rows of its tables: they stand in the text's order, the largest anywhere."""
        return super().shown(width, len(self.tokens) + 2, more, everything=everything)

    def opening(self) -> dict[str, str | int | None]:
        """Open the page at these steps."""
        return {"view": "steps", "layer": self.layer, "head": self.head, "word": self.word}

    def tabs(self) -> list[Panel]:
        """None: the page's Steps has every number of these, of any token and head."""
        return []

    def steps_of(self) -> list[int]:
        """The layer of these steps."""
        return [self.layer]


def steps(trace: Trace, word: str, layer: int = 0, head: int = 0) -> Steps:
    """Compute every step of each token of a word in one head. Layers and heads count from 0; -1 is the last."""
    layer, head = check_layer(trace, layer), check_head(trace, head)
    found = [(n, head_steps(trace, n, layer, head)) for each in trace.word(word) for n in each.tokens]
    return Steps(word, layer, head, trace.tokens, sinks(trace), found, about=Read.of(trace), traces=[trace])
