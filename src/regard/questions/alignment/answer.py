"""Hold a translation as what is seen of texts and targets, told by which words come from which."""

from dataclasses import asdict, dataclass

from regard.explain.frames import Row
from regard.questions.alignment import panels, sentences
from regard.questions.see.answer import Seen


@dataclass(frozen=True, eq=False, repr=False)
class Translation(Seen):
    """What is seen of texts and their targets, in the form of `Seen`: by the alignment of their cross-attention."""

    panels = panels.of_translation

    def findings(self) -> list[str]:
        """Say where the target's words come from, and how sure that is."""
        return sentences.alignment_findings(self.summary)

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

    def opening(self) -> dict[str, str | int | None]:
        """Open at the alignment."""
        return {"view": "alignment", "layer": self.layer, "head": self.head}
