"""The requests of a browser, checked strictly: wrong, missing or unknown fields raise an error."""

import dataclasses
import pathlib
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_type_hints

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from regard.capture.interventions.activations import What, patch
from regard.capture.interventions.names import OF, Part, ablate, edge, head, named_place
from regard.capture.interventions.resolve import Intervention
from regard.display import query
from regard.models.windows import WindowedTrace
from regard.plugins import QUESTIONS, others, ours
from regard.text.quoting import quoted, short
from regard.trace.trace import PairTrace, Trace

Number = Annotated[int, Field(ge=0, le=1_000_000)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Place = Word | Number  # a word, or the number of a token

AnyTrace = Trace | PairTrace | WindowedTrace

Name = Annotated[str, Path(pattern=r"^[0-9a-z-]{1,64}$")]  # of a page or a job
Index = Annotated[int, Path(ge=0, le=1 << 40)]
Level = Annotated[int, Path(ge=0, le=40)]  # of tiles: each has 2^level weights in a row
HeadNumber = Annotated[int | None, Query(ge=0, le=1 << 20)]  # None for the mean of heads
JobName = Annotated[str | None, Header(pattern=r"^[0-9a-z-]{1,64}$")]


class Strict(BaseModel):
    """The common base: no unknown fields, and no numbers written as strings."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HeadAblationRequest(Strict):
    """A head's output set to zero."""

    kind: Literal["head"]
    layer: Number
    head: Number
    part: Part | None = None

    def intervention(self) -> Intervention:
        """Return the same as the library takes it."""
        return ablate(head(self.layer, self.head, part=self.part))


class EdgeAblationRequest(Strict):
    """The attention of one word or token to another, left out of the softmax: in one layer and head, or in all."""

    kind: Literal["edge"]
    query: Place
    key: Place
    layer: Number | None = None
    head: Number | None = None
    part: Part | None = None

    def intervention(self) -> Intervention:
        """Return the same as the library takes it."""
        return ablate(edge(self.query, self.key, layers=self.layer, heads=self.head, part=self.part))


class StatePatch(Strict):
    """Activations of another text's run to insert into this run. at, source_at: None for every token.

    source: that text, which is traced for it. source_at: where in it, None for the same as at.
    """

    kind: Literal["patch"]
    what: What
    layer: Number | Literal["input"]
    source: Annotated[str, Field(min_length=1)]
    at: Place | None = None
    source_at: Place | None = None
    head: Number | None = None
    part: Part | None = None

    def intervention(self, source: Trace) -> Intervention:
        """Return the same as the library takes it. source: the trace of that text."""
        return patch(
            self.what, layer=self.layer, source=source, at=self.at, source_at=self.source_at, head=self.head,
            part=self.part,
        )  # fmt: skip


Change = Annotated[HeadAblationRequest | EdgeAblationRequest | StatePatch, Field(discriminator="kind")]


def change_name(change: HeadAblationRequest | EdgeAblationRequest | StatePatch, trace: AnyTrace) -> str:
    """Name a change in a sentence: "without layer 2, head 1". trace: whose tokens have numbers."""

    def at(place: Place) -> str:
        tokens = trace.tokens if isinstance(trace, Trace) else ()
        return quoted(tokens[place].text) if isinstance(place, int) and place < len(tokens) else named_place(place)

    if isinstance(change, StatePatch):
        where = "every token" if change.at is None else at(change.at)
        return f"with {where} in layer {change.layer} as in {quoted(short(change.source, 48))}"
    where = "all layers" if change.layer is None else f"layer {change.layer}"
    where += ("" if change.head is None else f", head {change.head}") + OF[change.part]
    return f"without {at(change.query)} → {at(change.key)} in {where}" if change.kind == "edge" else f"without {where}"


class TraceRequest(Strict):
    """Texts to trace.

    model: the number of one of those that the server was started with; an encoder-decoder writes its targets itself.
    ablations: and patches, done to all texts, in order; the page then shows the texts as they are as well. other:
    another model that reads the texts too. window: read in windows with this many tokens. word: whose path through the
    layers the page shows. references: words beside which that path is shown, each a separate text.
    """

    model: Number = 0
    other: Number | None = None
    texts: Annotated[list[str], Field(min_length=1)]
    ablations: Annotated[list[Change], Field(max_length=64)] = []
    window: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    word: Word | None = None
    references: Annotated[list[Word], Field(max_length=16)] = []
    steps: bool = False


class Steering(Strict):
    """A push of what leaves a layer (None: the middle one), from the mean state of one text towards another's."""

    towards: Annotated[str, Field(min_length=1)]
    away: Annotated[str, Field(min_length=1)]
    layer: Number | None = None
    strength: Annotated[float, Field(ge=-1e6, le=1e6)] = 1.0


class GenerationRequest(Strict):
    """A text to continue.

    The likeliest token is taken each time. ablations: done to every pass; the page then shows what was written without
    and with them. steer: the states while it writes, beside it unsteered.
    """

    model: Number = 0
    prompt: str
    new_tokens: Annotated[int, Field(ge=1, le=512)] = 20
    ablations: Annotated[list[Change], Field(max_length=64)] = []
    steer: Steering | None = None


class QuestionRequest(Strict):
    """A question to texts. kind: its name; asked: the fields of what the command and the library ask."""

    question_class: ClassVar[type[query.Query]]
    kind: str
    texts: Annotated[list[str], Field(min_length=1, max_length=16)]
    asked: Strict

    def question(self) -> query.Query:
        """Return what is asked, as the command and the library have it."""
        made: query.Query = self.question_class(**dict(self.asked))
        return made


def _request(name: str, kind: Any) -> type[QuestionRequest] | None:
    """The request of one question, with a model of its query's fields; several values come as a list.

    None for a command that isn't a question to texts, or that a page doesn't ask.
    """
    if not (isinstance(kind, type) and issubclass(kind, query.Query) and kind.served):
        return None
    hints = get_type_hints(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if "tuple" in str(hint):
            hint = Annotated[hint, Field(strict=False)]  # JSON has lists
        if pathlib.Path not in get_args(hint):  # a browser names no files of this machine
            fields[field.name] = (hint, field.default)
    own = create_model(f"{kind.__name__}Fields", __base__=Strict, **fields)
    parts: dict[str, Any] = {"kind": (Literal[name], ...), "asked": (own, ...)}
    made = create_model(kind.__name__, __base__=QuestionRequest, **parts)
    made.question_class = kind
    return made


REQUESTS: Any = Union[
    *filter(None, [*(_request(*each) for each in ours(QUESTIONS).items()), *others(QUESTIONS, _request).values()])
]


class ExperimentRequest(Strict):
    """A question to one model."""

    model: Number = 0
    experiment: Annotated[REQUESTS, Field(discriminator="kind")]

    @property
    def texts(self) -> list[str]:
        """The texts that it reads."""
        own: QuestionRequest = self.experiment
        return own.texts


class CorpusRequest(Strict):
    """A query to a store: a word's occurrences, its senses, or what heads do.

    store: the number of one of those that the server was started with. senses: how many, None for as many as there are.
    """

    store: Number = 0
    about: Literal["occurrences", "senses", "heads"]
    word: Word | None = None
    senses: Annotated[int, Field(ge=2, le=20)] | None = None


class PictureRequest(Strict):
    """A picture to look at.

    picture: the bytes of its file, in base64. name: of that file. text: beside it, of a model that reads it in one.
    """

    model: Number = 0
    name: Word
    picture: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)] | None = None

    @property
    def texts(self) -> list[str]:
        """The text that it is in, if there is one."""
        return [] if self.text is None else [self.text]


OfModel = TraceRequest | GenerationRequest | ExperimentRequest | PictureRequest  # questions to a model
Question = CorpusRequest | OfModel
