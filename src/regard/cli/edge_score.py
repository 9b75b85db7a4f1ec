"""`regard why --edge`: why a head looks from one word at another."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.capture.interventions.names import PARTS, Part
from regard.cli import clock
from regard.cli.early_checks import EarlyChecks
from regard.cli.outputs import Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, traced, traced_again
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.explain.places import Place
    from regard.trace.trace import PairTrace, Trace
    from regard.web.page import Page


@dataclass(frozen=True)
class EdgeAsked:
    """What --edge, --layer, --head and --part were given."""

    edge: str | None = None
    layer: int | None = None
    head: int | None = None
    part: str | None = None

    def check_absent(self, figure: Path | None) -> None:
        """Refuse what goes with --edge alone, where there is none."""
        given = {"--layer": self.layer, "--head": self.head, "--part": self.part, "--figure": figure}
        used = [option for option, value in given.items() if value is not None]
        if used:
            raise RegardError(f"{used[0]} goes with --edge WORD:WORD: it says of which score, or draws it")

    def words(self) -> tuple[str, str]:
        """The two words.

        Raises:
            RegardError: they are not two.
        """
        assert self.edge is not None
        query, colon, key = self.edge.rpartition(":") if self.edge.count(":") == 1 else ("", "", "")
        if not colon or not query.strip() or not key.strip():
            raise RegardError(f"--edge: given {self.edge!r}, needs two words and a colon: --edge bank:river")
        return query.strip(), key.strip()

    def checked_part(self) -> Part | None:
        """The part.

        Raises:
            RegardError: there is none of this name.
        """
        if self.part is not None and self.part not in PARTS:
            raise RegardError(f"--part: given {self.part!r}, needs encoder, decoder or cross")
        return next((each for each in PARTS if each == self.part), None)


def show_edge(given: Source, asked: EdgeAsked, word: str | None, top: int, everything: bool, outputs: Outputs) -> None:
    """Trace the text, split the score, and show it."""
    if word is not None:
        raise RegardError("--edge and --word: give one of them, a score to split or a word to explain")
    query, key = asked.words()
    part = asked.checked_part()
    chosen = Selection(asked.layer, asked.head, top)
    chosen.check()
    outputs.check()
    EarlyChecks.of(given, again=given.file is not None).check(chosen, outputs.save, outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.views.json import score_data
    from regard.views.terminal.layout import put
    from regard.views.terminal.score_sources import show_score
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(outputs.json)
    with errors.status("loading the model and tracing …"):
        done = traced(given) if given.file is None else traced_again(given)
        if len(done.traces) != 1:
            raise RegardError(f"--edge: given {len(done.traces)} texts, needs one: a score is of one text")
        (trace,), ((text, target),) = done.traces, done.texts
        places = _places(trace, query, key, part)
        layer, head = _strongest(trace, places, asked, part)
        found = done.model.score_sources(trace, *places, layer=layer, head=head, part=part)

        def draw(file: Path) -> list[str]:
            from regard.views.figures.score_sources import draw_score  # matplotlib, for those who asked for a picture

            return draw_score(found, file)

        def page(html: PageFile) -> "Page":
            from regard.web.score_sources import score_page_with

            return score_page_with(found, trace, html.choice())

        notes = outputs.write(traces=[trace], draw=draw, data=lambda: score_data(found, trace, text, target), page=page)
    put(unknown_first(of_traces([trace])), console)
    show_score(found, [trace.status], top, everything, console, clock.seconds())
    finish(console, errors, outputs.files, notes)


def _sides(trace: "Trace | PairTrace", part: Part | None) -> "tuple[Trace, Trace, Any]":
    """The traces of query and key, and the maps between them."""
    from regard.explain.causes.score_sources import texts_of

    return texts_of(trace, part)


def _places(trace: "Trace | PairTrace", query: str, key: str, part: Part | None) -> "tuple[Place, Place]":
    """The words, each by its text, or a token by its number where the text has no such word."""
    from regard.explain.places import place_in

    queries, keys, _ = _sides(trace, part)
    return place_in(queries, query), place_in(keys, key)


def _strongest(
    trace: "Trace | PairTrace", places: "tuple[Place, Place]", asked: EdgeAsked, part: Part | None
) -> tuple[int, int]:
    """The layer and head that were asked for; what was left open is where the query gives the key most."""
    from regard.explain.places import tokens_of
    from regard.trace.layer_subset import kept_numbers

    queries, keys, maps = _sides(trace, part)
    if asked.layer is not None and asked.head is not None:
        return asked.layer, asked.head
    rows, cols = tokens_of(queries, places[0]), tokens_of(keys, places[1])
    layers = kept_numbers(maps) if asked.layer is None else [asked.layer]
    best = (-1.0, 0, 0)
    for layer in layers:
        given = maps[layer][:, rows][..., cols].sum(-1).mean(-1)  # (H,)
        heads = range(len(given)) if asked.head is None else [asked.head]
        best = max(best, *((float(given[head]), -layer, -head) for head in heads))
    return -best[1], -best[2]
