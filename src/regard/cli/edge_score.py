"""`regard why --edge`: why a head looks from one word at another."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import clock
from regard.cli.early_checks import EarlyChecks
from regard.cli.outputs import Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, traced, traced_again
from regard.cli.telling import EVERY, more_of
from regard.errors import RegardError
from regard.questions.score.asked import ScoreAsked

if TYPE_CHECKING:
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

    def question(self) -> ScoreAsked:
        """The question, with the two words apart.

        Raises:
            RegardError: they are not two.
        """
        assert self.edge is not None
        query, colon, key = self.edge.rpartition(":") if self.edge.count(":") == 1 else ("", "", "")
        if not colon or not query.strip() or not key.strip():
            raise RegardError(f"--edge: given {self.edge!r}, needs two words and a colon: --edge bank:river")
        return ScoreAsked(query=query.strip(), key=key.strip(), layer=self.layer, head=self.head, part=self.part)


def show_edge(given: Source, asked: EdgeAsked, word: str | None, top: int, everything: bool, outputs: Outputs) -> None:
    """Trace the text, split the score, and show it."""
    if word is not None:
        raise RegardError("--edge and --word: give one of them, a score to split or a word to explain")
    question = asked.question()
    if given.file is None:  # how many traces a file has is known once it is read
        question.check(len(given.texts), called=_called)
    chosen = Selection(asked.layer, asked.head, top)
    chosen.check()
    outputs.check()
    EarlyChecks.of(given, again=given.file is not None).check(chosen, outputs.save, outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.display.terminal import drawn
    from regard.questions.score.panels import of_sides
    from regard.views.terminal.layout import put
    from regard.views.terminal.one_screen import ending
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(outputs.json)
    with errors.status("loading the model and tracing …"):
        done = traced(given, errors) if given.file is None else traced_again(given)
        question.check(len(done.traces), called=_called)
        (trace,) = done.traces
        found = question.answer(done.model, done.traces)

        def draw(file: Path) -> list[str]:
            from regard.display.picture import draw  # matplotlib, for those who asked for a picture

            return draw(found.chosen(), found.title(), file)

        def page(html: PageFile) -> "Page":
            from regard.web.answers import page_beside
            from regard.web.assemble import Opening

            opening = Opening(layer=found.layer, head=found.head, token=found.query_parts.tokens[0])
            return page_beside(found, [trace], html.choice(), opening)

        notes = outputs.write(traces=[trace], draw=draw, data=found.to_json, page=page)
    shown = found.shown(console.width, top, "in --json")
    if everything:
        shown += [drawn(panel, console.width, EVERY, "in --json") for panel in of_sides(found)]
    more = "" if everything else "--all (each side's parts), "
    more += more_of(found, top, ("json", "figure", "html"))
    last = ending(found.about.statuses, more, clock.seconds(), found.exactness())
    put([*unknown_first(of_traces([trace])), *shown, last], console)
    finish(console, errors, outputs.files, notes)


def _called(field: str) -> str:
    """What the command calls a field: query and key stand in --edge."""
    return "--edge" if field in ("query", "key") else f"--{field}"
