"""Check arguments before torch is imported, against a model's config.json or a saved file's header.

The messages are those of the exact checks, which come with the model; what the files do not say is left to them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.checks import from_zero, missing_number_error, target_without_pairs_error
from regard.cli.outputs import TraceFile
from regard.cli.page_file import NO_PAGE, PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source
from regard.errors import RegardError
from regard.model_files.sizes import ModelSizes, read_sizes
from regard.tensor_file_header import TRACE, open_tensor_file
from regard.text.words import find_spans, which_text, word_in_neither_text

NOTHING_SAVED = TraceFile()
Both = Sequence[tuple[str, str | None]]  # texts, each with its target where there is one
# what is said of a model, by its name, that reads pairs where none are read, or the other way round
NO_WINDOWS = "--window: {} is an encoder-decoder, which cannot read a text in windows"
NO_STEPS = "steps: {} is an encoder-decoder: use regard.textbook.head_steps in Python"
NO_GENERATE = "generate: {} is an encoder-decoder: use regard translate"
NO_TRANSLATE = "translate: {} is no encoder-decoder, it reads a text alone"


@dataclass(frozen=True)
class EarlyChecks:
    """What is known of the model, or of what is saved; of the latter its texts, too."""

    model: ModelSizes
    texts: Both | None = None

    @staticmethod
    def of(given: Source, *, again: bool = False) -> "EarlyChecks":
        """What is known before anything is loaded; again: whether the model reads the texts of a file anew.

        Raises:
            RegardError: there is no such file or no such model, or the file is none of traces.
        """
        if given.file is None:
            sizes = read_sizes(given.model)
            if given.targets and sizes.pairs is False:
                raise target_without_pairs_error(sizes.name)
            return EarlyChecks(sizes, given.pairs())
        known = saved(given.file)
        if again:
            return replace(known, model=read_sizes(given.model))
        if given.model is not None:
            read_sizes(given.model)
        return known

    def check(self, chosen: Selection, saved: TraceFile = NOTHING_SAVED, page: PageFile = NO_PAGE) -> None:
        """Refuse a layer, head or word that is not there, and parts to be written that the model does not have."""
        self.check_numbers(chosen, f"{self.model.name} has")
        self.check_word(chosen.word)
        self.check_saved_parts(saved)
        self.check_page(page)

    def check_numbers(self, chosen: Selection, there: str) -> None:
        """Refuse a layer or head that the model does not have; the range is named. there: as of `from_zero`."""
        for what, given, count in (("layer", chosen.layer, self.model.layers), ("head", chosen.head, self.model.heads)):
            if given is not None and count is not None:
                from_zero(what, given, count, there)

    def check_saved_parts(self, saved: TraceFile) -> None:
        """Refuse layers and heads to be saved that the model does not have."""
        layers, heads = saved.layers or (), saved.heads or ()
        first = layers[0] if layers else 0
        for what, given, count, there in (
            ("layer", layers, self.model.layers, f"{self.model.name} has"),
            ("head", heads, self.model.heads, f"layer {first} has"),
        ):
            if given and count is not None and max(given) >= count:
                raise missing_number_error(what, next(number for number in given if number >= count), count, there)

    def check_page(self, page: PageFile) -> None:
        """Refuse layers of a page that the model does not have."""
        for layer in page.layers or ():
            if self.model.layers is not None and layer >= self.model.layers:
                error = missing_number_error("layer", layer, self.model.layers, f"{self.model.name} has")
                raise RegardError(f"--html-with layers: {error}")

    def check_word(self, word: str | None) -> None:
        """Refuse a word that is not in each text, or its target; not where the model writes the target itself."""
        if word is None or self.texts is None:
            return
        for number, (text, target) in enumerate(self.texts, 1):
            nth = which_text(number, len(self.texts))
            try:
                if target is not None or self.model.pairs is False:
                    find_spans(text, word)
            except RegardError as error:
                if target is None:
                    raise RegardError(f"text{nth}: {error}" if nth else str(error)) from None
                try:
                    find_spans(target, word)
                except RegardError as other:
                    raise word_in_neither_text(error, other, nth) from None

    def check_kind(self, pairs: bool, refusal: str) -> None:
        """Refuse a model that reads pairs, or one that does not. refusal: the message, {} for its name."""
        if self.model.pairs is pairs:
            raise RegardError(refusal.format(self.model.name))


def saved(file: Path) -> EarlyChecks:
    """Read the model, sizes and texts of a file of traces from its description, whose checksum is not compared yet.

    Raises:
        RegardError: there is no such file, or it is none of traces.
    """
    texts, sizes = [], []
    with open_tensor_file(file, TRACE) as opened:
        traces = json.loads(opened.metadata()["description"])
        for trace in traces if isinstance(traces, list) else [traces]:
            pair = trace["type"] == "PairTrace"
            sides = [trace["encoder"], trace["decoder"]] if pair else [trace]
            texts.append((sides[0]["text"], sides[1]["text"] if pair else None))
            for side in sides:
                queries = [saved_map["query"]["name"] for _, _, saved_map in side["attention"]["items"]]
                heads = opened.get_slice(queries[0]).get_shape()[1] if queries else None
                sizes.append(ModelSizes(side["status"]["model"], side["attention"]["count"], heads, pair))
    alike = all(each == sizes[0] for each in sizes)
    return EarlyChecks(sizes[0] if alike else ModelSizes(str(file)), texts)
