"""Hold a translation: texts and targets, with the source words that each target word attends to."""

from dataclasses import asdict, dataclass

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.frames import Row
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Aligned, Alignment
from regard.explain.weights.attended import Attended
from regard.explain.wording import called, count_of_tokens
from regard.questions.alignment.sentences import TEXTS, alignment_findings, translated_differently
from regard.questions.see.answer import Seen
from regard.questions.see.pair_panels import looks
from regard.text.quoting import short as shortened
from regard.text.word_pieces import wordlike

MOST_ROWS = 14  # of the table on the first screen, over all its texts
LETTERS = {1: 300, 2: 80}  # of each text and target there, of one text or two
BESIDE = 2  # further source tokens of a row


@dataclass(frozen=True, eq=False, repr=False)
class Translation(Seen):
    """Texts and their targets, in the form of `Seen`, with the alignment of their cross-attention."""

    def findings(self) -> list[str]:
        """Say which source words the target's words attend to."""
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
        rows = [[shortened(str(text), most) for text in each] for each in rows[:TEXTS]]
    columns = [Column("text"), Column("target")]
    return Table(name="Texts", title="", columns=columns, rows=rows, screen=short, brief=short)


def _sources(summary: Summary) -> Table:
    """Each target token and the source tokens that it attends to as it is written, as many as a screen has room for."""
    assert summary.target is not None
    few = summary.target.alignments[:TEXTS]
    rows: list[list[Cell]] = []
    left, marked = 0, False
    for each in few:
        source, shown = summary.tokens[each.text], shown_rows(summary, each, MOST_ROWS // len(few))
        left += len(shown_rows(summary, each, len(each.tokens))) - len(shown)
        for aligned, row in shown:
            first, *others = row.top
            named = [(called(share.token, source), share.weight) for share in others[:BESIDE]]
            beside = Shares(named, digits=2, one_line=True, mark="*" * (row.apart > 0.5))
            label = [summary.labels[each.text]][: len(few) - 1]
            rows.append([*label, aligned.text, called(first.token, source), first.weight, beside])
            marked |= row.apart > 0.5
    sinks = " and attention sinks" * any(each.sinks for each in few)
    more = len(summary.target.alignments) - len(few)
    notes = [f"{count_of_tokens(left)}{f' and {more} more texts' * (more > 0)} not shown"] if left + more else []
    notes += [f"* most attention goes to special tokens{sinks}"] if marked else []
    head = "mean of heads" if few[0].head is None else f"head {few[0].head}"
    title = f"Cross-attention as each token is written (layer {few[0].written_layer}, {head})"
    every = [Column("text"), Column("target"), Column("attends to"), Column("weight", 2, bar=True), Column("and to")]
    return Table(
        name="Cross-attention", title=title, note="; ".join(notes), columns=every[len(few) == 1 :], rows=rows,
        screen=True, brief=True,
    )  # fmt: skip


def shown_rows(summary: Summary, alignment: Alignment, count: int) -> list[tuple[Aligned, Attended]]:
    """Choose target tokens with the rows that write them: words that two texts translate differently come first, then
    words by their largest weight, then other tokens. They are listed in the target's order.
    """
    assert summary.target is not None
    target = summary.target.summary.tokens[alignment.text]
    different = {links[alignment.text].target for links in translated_differently(summary) if alignment.text < TEXTS}

    def order(pair: tuple[Aligned, Attended]) -> tuple[bool, bool, float]:
        token, row = pair
        no_word = target[token.token].special or not wordlike(token.text)
        return token.token not in different, no_word, -row.top[0].weight

    rows = [(token, token.written) for token in alignment.tokens if token.written is not None and token.written.top]
    return sorted(sorted(rows, key=order)[:count], key=lambda pair: pair[0].token)
