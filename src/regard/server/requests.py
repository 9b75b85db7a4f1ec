"""Define the JSON requests of a browser as strict Pydantic models. A wrong or unknown field is an error."""

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
from regard.plugins import QUESTIONS, REQUESTS, others, ours
from regard.text.quoting import quoted, short
from regard.trace.trace import PairTrace, Trace

Number = Annotated[int, Field(ge=0, le=1_000_000)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Place = Word | Number  # a word, or a token's position

AnyTrace = Trace | PairTrace | WindowedTrace

Name = Annotated[str, Path(pattern=r"^[0-9a-z-]{1,64}$")]  # a page's or job's name
Index = Annotated[int, Path(ge=0, le=1 << 40)]
Level = Annotated[int, Path(ge=0, le=40)]  # the level of a tile: its cells have 2^level × 2^level weights
HeadNumber = Annotated[int | None, Query(ge=0, le=1 << 20)]  # None for the mean of heads
JobName = Annotated[str | None, Header(pattern=r"^[0-9a-z-]{1,64}$")]


class StrictRequest(BaseModel):
    """The base class of all requests. Unknown fields and numbers in strings are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HeadAblationRequest(StrictRequest):
    """A request to set a head's output to zero."""

    kind: Literal["head"]
    layer: Number
    head: Number
    part: Part | None = None

    def intervention(self) -> Intervention:
        """Return the ablation as an intervention of the library."""
        return ablate(head(self.layer, self.head, part=self.part))


class EdgeAblationRequest(StrictRequest):
    """A request to mask the attention from one token to another, in one layer and head or in all of them."""

    kind: Literal["edge"]
    query: Place
    key: Place
    layer: Number | None = None
    head: Number | None = None
    part: Part | None = None

    def intervention(self) -> Intervention:
        """Return the ablation as an intervention of the library."""
        return ablate(edge(self.query, self.key, layers=self.layer, heads=self.head, part=self.part))


class StatePatch(StrictRequest):
    """A request to patch activations from another text's forward pass. at: the token to patch, None for all.

    source: the other text, which will be traced. source_at: the token in that text, None for the same as `at`.
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
        """Return the patch as an intervention of the library. source: the other text's trace."""
        return patch(
            self.what, layer=self.layer, source=source, at=self.at, source_at=self.source_at, head=self.head,
            part=self.part,
        )  # fmt: skip


Change = Annotated[HeadAblationRequest | EdgeAblationRequest | StatePatch, Field(discriminator="kind")]


def change_name(change: HeadAblationRequest | EdgeAblationRequest | StatePatch, trace: AnyTrace) -> str:
    """Describe a change in words, such as "without layer 2, head 1". trace: used to find the text of tokens."""

    def tag(index: Place) -> str:
        tokens = trace.tokens if isinstance(trace, Trace) else ()
        return quoted(tokens[index].text) if isinstance(index, int) and index < len(tokens) else named_place(index)

    if isinstance(change, StatePatch):
        site = "every token" if change.at is None else tag(change.at)
        return f"with {site} in layer {change.layer} as in {quoted(short(change.source, 48))}"
    site = "all layers" if change.layer is None else f"layer {change.layer}"
    site += ("" if change.head is None else f", head {change.head}") + OF[change.part]
    return f"without {tag(change.query)} → {tag(change.key)} in {site}" if change.kind == "edge" else f"without {site}"


class TraceRequest(StrictRequest):
    """A request to trace texts, and to ablate heads or edges or patch states in all of them.

    model: the number of a model of the server. An encoder-decoder generates the targets. ablations: ablations and
    patches in order. The page then also shows the unchanged texts. other: the number of a second model to compare with.
    window: tokens per window, None to read texts whole. word: a word whose path through the layers the page shows.
    references: words whose paths the page shows for comparison. Each word is traced as a separate text.
    """

    model: Number = 0
    other: Number | None = None
    texts: Annotated[list[str], Field(min_length=1)]
    ablations: Annotated[list[Change], Field(max_length=64)] = []
    window: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    word: Word | None = None
    references: Annotated[list[Word], Field(max_length=16)] = []
    steps: bool = False


class Steering(StrictRequest):
    """A steering vector: the difference of two texts' mean states. layer: steer its output, None for the middle."""

    towards: Annotated[str, Field(min_length=1)]
    away: Annotated[str, Field(min_length=1)]
    layer: Number | None = None
    strength: Annotated[float, Field(ge=-1e6, le=1e6)] = 1.0


class GenerationRequest(StrictRequest):
    """A request to continue a text with the most likely tokens.

    ablations: applied in every forward pass. The page then shows the continuations with and without them. steer: a
    steering vector. The page then shows the continuations with and without it.
    """

    model: Number = 0
    prompt: str
    new_tokens: Annotated[int, Field(ge=1, le=512)] = 20
    ablations: Annotated[list[Change], Field(max_length=64)] = []
    steer: Steering | None = None


class QuestionRequest(StrictRequest):
    """A question about texts. kind: its name. asked: its fields, as in the command and the library."""

    question_class: ClassVar[type[query.Query]]
    kind: str
    texts: Annotated[list[str], Field(min_length=1, max_length=16)]
    asked: StrictRequest

    def question(self) -> query.Query:
        """Return the question as an object of the library."""
        question: query.Query = self.question_class(**dict(self.asked))
        return question


def _request_of(name: str, kind: Any) -> type[QuestionRequest] | None:
    """Create the request class of a question from its query class. Tuples are sent as lists.

    Returns None for a command that isn't a question about texts, or that pages don't offer.
    """
    if not (isinstance(kind, type) and issubclass(kind, query.Query) and kind.served):
        return None
    hints = get_type_hints(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if "tuple" in str(hint):
            hint = Annotated[hint, Field(strict=False)]  # JSON has lists instead of tuples
        if pathlib.Path not in get_args(hint):  # a browser can't name files of this machine
            fields[field.name] = (hint, field.default)
    fields_class = create_model(f"{kind.__name__}Fields", __base__=StrictRequest, **fields)
    parts: dict[str, Any] = {"kind": (Literal[name], ...), "asked": (fields_class, ...)}
    request_class = create_model(kind.__name__, __base__=QuestionRequest, **parts)
    request_class.question_class = kind
    return request_class


_questions = (ours(QUESTIONS) | ours(REQUESTS)).items()
QUESTION_REQUESTS: Any = Union[
    *filter(None, [*(_request_of(*item) for item in _questions), *others(QUESTIONS, _request_of).values()])
]


class ExperimentRequest(StrictRequest):
    """A request to answer a question with a model."""

    model: Number = 0
    experiment: Annotated[QUESTION_REQUESTS, Field(discriminator="kind")]

    @property
    def texts(self) -> list[str]:
        """Return the texts of the question."""
        question: QuestionRequest = self.experiment
        return question.texts


class CorpusRequest(StrictRequest):
    """A query to an embedding index: a word's occurrences, its senses, or statistics of heads.

    store: the number of an index of the server. senses: how many senses, None for the best silhouette.
    """

    store: Number = 0
    about: Literal["occurrences", "senses", "heads"]
    word: Word | None = None
    senses: Annotated[int, Field(ge=2, le=20)] | None = None


class PictureRequest(StrictRequest):
    """A request to show where a model attends in an image.

    picture: the bytes of the image file, in base64. name: the file's name. text: for a model that reads both.
    """

    model: Number = 0
    name: Word
    picture: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)] | None = None

    @property
    def texts(self) -> list[str]:
        """Return the text of the request in a list, or an empty list."""
        return [] if self.text is None else [self.text]


ModelQuestion = TraceRequest | GenerationRequest | ExperimentRequest | PictureRequest  # questions to a model
Question = CorpusRequest | ModelQuestion
