"""Hold a translation as what is seen of texts and targets, told by which words come from which."""

from dataclasses import asdict, dataclass

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.frames import Row
from regard.explain.texts.summary import Summary
from regard.explain.wording import called
from regard.questions.alignment.sentences import TEXTS, alignment_findings, told_first
from regard.questions.see.answer import Seen
from regard.questions.see.pair_panels import looks
from regard.text.tokens import shortened

MOST_ROWS = 14  # of the table on the first screen, over all its texts
LETTERS = {1: 300, 2: 80}  # of each text and target there, of one text or two
BESIDE = 2  # other source tokens of a row


@dataclass(frozen=True, eq=False, repr=False)
class Translation(Seen):
    """What is seen of texts and their targets, in the form of `Seen`: by the alignment of their cross-attention."""

    def findings(self) -> list[str]:
        """Say where the target's words come from, and how sure that is."""
        return alignment_findings(self.summary)

    def rows(self) -> list[Row]:
        """One row for each of the source tokens that a target token looks at most, as it is written and as it is read.

        The target's tokens in their order, of each the largest weights first.
        """
        assert self.summary.target is not None
        rows: list[Row] = []
        for each in self.summary.target.alignments:
            for aligned in each.tokens:
                own: Row = {"text": self.summary.labels[each.text], "token": aligned.token, "target": aligned.text}
                for name, row in (("written", aligned.written), ("read", aligned.read)):
                    looks = own | {"as_it_is": name, "layer": row.layer if row else None}
                    rows += [looks | {f"from_{key}": value for key, value in asdict(share).items()}
                             for share in (row.top if row else ())]  # fmt: skip
        return rows

    def panels(self) -> list[Panel]:
        """The texts and their targets, where words come from, and where every target token looks, in two views."""
        summary, target = self.summary, self.summary.target
        assert target is not None
        views = [looks(each, summary, screen=False) for each in target.alignments]
        return [_texts(summary, short=True), _texts(summary, short=False), _sources(summary), *views]

    def opening(self) -> dict[str, str | int | None]:
        """Open at the alignment."""
        return {"view": "alignment", "layer": self.layer, "head": self.head}


def _texts(summary: Summary, *, short: bool) -> Table:
    """Each text beside its target; for a screen the first, shortened."""
    assert summary.target is not None
    rows: list[list[Cell]] = list(map(list, zip(summary.texts, summary.target.summary.texts, strict=True)))
    if short:
        most = LETTERS[min(len(rows), TEXTS)]
        rows = [[shortened(str(text), most).strip("'") for text in each] for each in rows[:TEXTS]]
    columns = [Column("text"), Column("target")]
    return Table(name="Texts", title="", columns=columns, rows=rows, screen=short, brief=short)


def _sources(summary: Summary) -> Table:
    """Each target token and where it comes from as it is written: the telling ones, and those with large weights."""
    assert summary.target is not None
    few = summary.target.alignments[:TEXTS]
    rows: list[list[Cell]] = []
    left = 0
    for each in few:
        source = summary.tokens[each.text]
        told = told_first(summary, each, MOST_ROWS // len(few))
        left += len(told_first(summary, each, len(each.tokens))) - len(told)
        for aligned, row in told:
            first, *others = row.top
            named = [(called(share.token, source), share.weight) for share in others[:BESIDE]]
            beside = Shares(named, digits=2, one_line=True, mark="*" * (row.apart > 0.5))
            label = [summary.labels[each.text]][: len(few) - 1]
            rows.append([*label, aligned.text, called(first.token, source), first.weight, beside])
    whose = f"layer {few[0].written_layer}" + ("" if few[0].head is None else f", head {few[0].head}")
    note = f"Cross-attention of {whose}, the row that writes each token"
    note += (
        f"; the words with the largest weights, {left} more target tokens are in the table of each text" if left else ""
    )
    if any(isinstance(own[-1], Shares) and own[-1].mark for own in rows):
        note += f"; * special tokens{' and sinks' * any(each.sinks for each in few)} take more than half"
    every = [Column("text"), Column("target"), Column("comes from"), Column("weight", 2, bar=True), Column("and from")]
    title, columns = "Where the words come from", every[len(few) == 1 :]
    return Table(name=title, title=title, note=f"{note}.", columns=columns, rows=rows, screen=True, brief=True)
