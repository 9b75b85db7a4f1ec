"""`regard why --edge`: why a head looks from one word at another."""

from dataclasses import dataclass, replace

from regard.cli.early_checks import EarlyChecks
from regard.cli.outputs import Outputs
from regard.cli.selection import Selection
from regard.cli.source import Source, traced, traced_again
from regard.cli.telling import tell
from regard.errors import RegardError
from regard.questions.score.asked import ScoreAsked


@dataclass(frozen=True)
class EdgeAsked:
    """What --edge, --layer, --head and --part were given."""

    edge: str | None = None
    layer: int | None = None
    head: int | None = None
    part: str | None = None

    def check_absent(self) -> None:
        """Refuse what goes with --edge alone, where there is none."""
        given = {"--layer": self.layer, "--head": self.head, "--part": self.part}
        used = [option for option, value in given.items() if value is not None]
        if used:
            raise RegardError(f"{used[0]} goes with --edge WORD:WORD: it says of which score")

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
    from regard.cli.console import consoles

    screens = consoles(outputs.json)
    with screens[1].status("loading the model and tracing …"):
        done = traced(given, screens[1]) if given.file is None else traced_again(given)
        question.check(len(done.traces), called=_called)
        found = replace(question.answer(done.model, done.traces), traces=done.traces)
    tell(found, outputs, screens, top, everything=everything, traces=done.traces)


def _called(field: str) -> str:
    """What the command calls a field: query and key stand in --edge."""
    return "--edge" if field in ("query", "key") else f"--{field}"
