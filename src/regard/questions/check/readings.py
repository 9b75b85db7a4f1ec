"""Choose what a model is checked on: texts of several kinds, ids where it has no tokenizer, a picture of noise."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy
import torch

from regard.capture.options import CaptureOptions, PassOptions
from regard.errors import RegardError
from regard.images.processor import PROCESSOR_FILE
from regard.models.inputs import how_pictures_are_read, read_images, read_inputs
from regard.text.tokens import Encoded, check_text, check_texts

if TYPE_CHECKING:
    from regard.models.model import Model

SENTENCE = "The river was high, so the man sat down on the bank and waited."
TEXTS = {
    "a sentence": SENTENCE,
    "one word": "bank",
    "other scripts": "Die Bank am Fluß – 銀行, берег, ضفة, 2½ km, naïve 🏦!",
}
LONG = (
    "In the town they said that the bank would close at noon. ",
    "Nobody came. ",
    "The boats had been pulled up on the left bank, where the reeds were, and a boy counted them twice. ",
    "He counted the money as well, and got another sum each time; ",
)
LONG_TEXT, ENOUGH = "a long text", 256  # tokens, or as many as the model reads
LENGTHS = (11, 5, 37)  # of random ids, where there is no tokenizer


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model reads. name: what it is called. asked: what `Model.trace` is given for it.

    beside: what the model's own code is given with that, by the names of its arguments.
    """

    name: str
    asked: Mapping[str, Any]
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_tokens(self) -> bool:
        """Whether it is of tokens alone, so that it can be changed and exchanged."""
        return not {"inputs", "images"} & set(self.asked)


def readings_of(
    model: "Model", texts: str | Sequence[str] | None = None, inputs: Mapping[str, Any] | None = None, seed: int = 0
) -> list[Reading]:
    """Choose what a model is checked on. texts, inputs: of the caller, instead of those that come with the package.

    Raises:
        RegardError: it reads neither texts, ids nor pictures alone; texts where there is no tokenizer, or what is none.
    """
    takes = model._session.takes
    if texts is not None:
        if inputs is not None:
            raise RegardError("check: given texts and inputs, needs one of them")
        texts = _checked_texts(model, texts)
    if inputs is not None:
        return [Reading("the inputs", {"inputs": inputs})]
    if texts is not None or (model.tokenizer is not None and "input_ids" in takes):
        named = TEXTS | {LONG_TEXT: long_text(model)} if texts is None else {_label(text): text for text in texts}
        both = {name: {"text": text} | ({"target": text} if model.pairs else {}) for name, text in named.items()}
        return [Reading(name, asked) for name, asked in both.items()]
    if "input_ids" in takes:
        drawn = torch.Generator().manual_seed(seed)
        most = min(model.limit or max(LENGTHS), max(LENGTHS))
        rows = [torch.randint(3, model._reader._id_count(), (min(n, most),), generator=drawn).tolist() for n in LENGTHS]
        pairs = [rows[(n + 1) % len(rows)] for n in range(len(rows))]
        return [
            Reading(f"{len(ids)} random ids", {"ids": ids} | ({"target_ids": target} if model.pairs else {}))
            for ids, target in zip(rows, pairs, strict=True)
        ]
    if how_pictures_are_read(model._session, model._reader, model.image_processor) == "alone":
        noise = numpy.random.default_rng(seed).integers(0, 256, (96, 128, 3), dtype=numpy.uint8)
        return [Reading("a picture of noise", {"images": noise})]
    name, instead = model.model.main_input_name, ""
    if name == "pixel_values":
        instead = f"put its {PROCESSOR_FILE}, which says how pictures are made ready, in the model's folder, or "
    raise RegardError(
        f"check: {model.name} reads {name!r}, which is not made up here: {instead}give it from Python, "
        f"regard.check(..., inputs={{{name!r}: ...}})"
    )


def long_text(model: "Model") -> str:
    """Join sentences until the model reads `ENOUGH` tokens, or as many as it can."""
    most, text, n = min(ENOUGH, model.limit or ENOUGH), SENTENCE, 0
    while True:
        longer = f"{text} {LONG[n % len(LONG)]}".strip()
        try:
            _, (encoded,) = model._reader.read("text", longer, None)
        except RegardError:  # longer than the model reads
            return text
        if len(encoded.tokens) > most:
            return text
        text, n = longer, n + 1


def own_inputs(model: "Model", readings: Sequence[Reading]) -> dict[str, Any]:
    """Make what the model's own code is given to read these in one batch, shorter ones padded on the right."""
    sources: list[Encoded] = []
    targets: list[Encoded] = []
    for each in readings:
        given = dict(each.asked)
        if "images" in given:
            _, items = read_images(model._session, model._reader, model.image_processor, given["images"], None)
            sources += items
            continue
        _, read, target = read_inputs(
            model._reader, model._session, given.get("text"), given.get("target"), given.get("ids"),
            given.get("target_ids"), given.get("inputs"),
        )  # fmt: skip
        sources += read
        targets += target or []
    return model._session.inputs(sources, targets or None, PassOptions(CaptureOptions()))


def takes_positions(model: "Model") -> bool:
    """Whether a model's forward takes the positions of its tokens."""
    return "position_ids" in inspect.signature(model.model.forward).parameters


def _checked_texts(model: "Model", texts: Any) -> list[str]:
    """The texts of a caller, of which one may stand alone."""
    given = list(check_texts(texts, "check: texts"))
    if not given:
        raise RegardError("check: given no text, needs at least one, or None for texts of several kinds")
    for n, each in enumerate(given, 1):
        check_text(each, f"check: text {n}")
    if "input_ids" not in model._session.takes:
        raise RegardError(f"check: {model.name} reads {model.model.main_input_name!r}, no texts: leave them out")
    if model.tokenizer is None:
        raise RegardError(
            f"check: {model.name} has no tokenizer to read texts: put its tokenizer.json in the model's folder, or "
            "leave the texts out to check it on random ids"
        )
    return given


def _label(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
