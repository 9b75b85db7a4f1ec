"""The page of an outcome's parts: the grid of heads, what a head took from each token, and all parts as tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.capture.score_path import Side, Writer
from regard.explain.causes.attribution import Attribution
from regard.explain.findings.attribution import attribution_findings, exactness
from regard.explain.findings.wording import capital
from regard.text.tokens import Token
from regard.web.page import Page, status_lines
from regard.web.panels import Row, cell_tokens, column, heat, strip, table
from regard.web.score_rules import Data
from regard.web.texts import direction


def attribution_page(found: Attribution, findings: Sequence[str] | None = None) -> Page:
    """Put together the page of an outcome's parts. findings: the sentences above, None for those of tokens."""
    page = Page(f"What adds to the {found.outcome}")
    page.findings = attribution_findings(found) if findings is None else findings
    page.status = status_lines([found.status], page) if found.status.model else []
    page.status.append(f"{capital(exactness(found))}.")
    page.panels = attribution_panels(found)
    page.opening["view"] = "panel 0"
    return page


def attribution_panels(found: Attribution) -> list[Data]:
    """Write the heads, the source tokens, the layers, and every part."""
    heads = _Heads.of(found)
    return [
        *([heads.grid(found)] if heads.rows else []),
        *(_sources(found, heads, side) for side in heads.sides()),
        _layers(found),
        _parts(found),
    ]


@dataclass
class _Heads:
    """What every head took from every token. added: of a row's number and a head, the sum of each source token.

    rows: whose stream, whether across, and which layer, in their order.
    """

    rows: list[tuple[Side | None, bool, int]]
    added: dict[tuple[int, int], list[float]]
    tokens: dict[Side | None, Sequence[Token]] = field(default_factory=dict)

    @staticmethod
    def of(found: Attribution) -> "_Heads":
        writers = [
            (each, float(value)) for each, value in zip(found.parts.writers, found.parts.vectors[:, 0], strict=True)
        ]
        own = [(each, value) for each, value in writers if each.kind == "attention" and each.head is not None]
        order = {None: 0, "encoder": 1, "decoder": 2}
        rows = sorted({_row(each) for each, _ in own}, key=lambda row: (order[row[0]], row[2], row[1]))
        heads = _Heads(rows, {}, dict(found.tokens))
        for each, value in own:
            assert each.head is not None
            assert each.source is not None
            place = rows.index(_row(each)), each.head
            sums = heads.added.setdefault(place, [0.0] * len(heads.tokens[heads.read(rows[place[0]])]))
            sums[each.source] += value
        return heads

    def read(self, row: tuple[Side | None, bool, int]) -> Side | None:
        """The text that a row's heads look at."""
        side, cross, _ = row
        return "encoder" if cross else side

    def sides(self) -> list[Side | None]:
        """The texts that heads look at."""
        return list(dict.fromkeys(self.read(row) for row in self.rows))

    def name(self, row: tuple[Side | None, bool, int]) -> str:
        side, cross, layer = row
        return f"layer {layer}" if side is None else f"{side} layer {layer}{', cross' * cross}"

    def grid(self, found: Attribution) -> Data:
        """Each head's sum, and behind it what it took from each token."""
        count = 1 + max(head for _, head in self.added)
        each = [[self.added.get((row, head)) for head in range(count)] for row in range(len(self.rows))]
        sides = self.sides()
        texts = [[token.text for token in self.tokens[side]] for side in sides]
        note = (
            f"Each cell is what one head added to the {found.outcome} (red), or took away from it (blue), over all "
            "tokens that it looked at. Click a head, or press Enter on it: from which tokens."
        )
        return heat(
            "What each head adds", note, [self.name(row) for row in self.rows], [f"head {n}" for n in range(count)],
            [[None if own is None else sum(own) for own in row] for row in each],
            signed=True, unit="adds", digits=4, axes=("layer", "head"), name="Heads",
            behind=cell_tokens(
                "What this head added by looking at each token: its weight on the token, times what it writes there, "
                "read in the direction of the outcome. The numbers sum to the head's.",
                [(text, direction("".join(text))) for text in texts],
                [sides.index(self.read(row)) for row in self.rows],
                each,
            ),
        )  # fmt: skip


def _row(writer: Writer) -> tuple[Side | None, bool, int]:
    assert writer.layer is not None
    return writer.side, writer.cross, writer.layer


def _sources(found: Attribution, heads: _Heads, side: Side | None) -> Data:
    """What attention took from each token of a text, over all heads and layers."""
    sums = [0.0] * len(heads.tokens[side])
    for (row, _), own in heads.added.items():
        if heads.read(heads.rows[row]) == side:
            sums = [a + b for a, b in zip(sums, own, strict=True)]
    of = "" if side is None else f" of the {side}"
    note = (
        f"What attention added to the {found.outcome} by looking at each token{of}, over all heads and layers that "
        "wrote it there. What a token brought through other tokens first is theirs."
    )
    return strip(
        f"Source tokens{of}", note, [token.text for token in heads.tokens[side]], sums, signed=True, unit="adds",
        digits=4,
    )  # fmt: skip


def _layers(found: Attribution) -> Data:
    """What each layer added, by its attention, its feed-forward block and its biases."""
    kinds = ("attention", "feed-forward", "bias")
    layers: dict[tuple[str, int | None], dict[str, float]] = {}
    for each, value in zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True):
        sums = layers.setdefault((each.side or "", each.layer), dict.fromkeys(("other", *kinds), 0.0))
        sums[each.kind if each.kind in kinds and each.layer is not None else "other"] += value
    rows: list[Row] = []
    for (side, layer), sums in sorted(
        layers.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1])
    ):
        name = "embeddings, and biases of no layer" if layer is None else f"layer {layer}"
        own: Row = [None if layer is None else sums[kind] for kind in kinds]
        rows.append([f"{side} {name}".strip(), *own, sum(sums.values())])
    rows.append(
        ["all", *(sum(sums[kind] for (_, n), sums in layers.items() if n is not None) for kind in kinds), found.value]
    )
    columns = [
        column("layer"),
        *(column(kind, 4) for kind in ("attention", "feed-forward", "biases")),
        column("sum", 4, bar=True),
    ]
    return table("What each layer adds", f"all: the {found.outcome}", columns, rows, name="Layers")


def _parts(found: Attribution) -> Data:
    rows: list[Row] = [[name, added] for name, added in found.by()]
    note = f"a head's looks at all tokens are one part; the {len(rows):,} parts sum to {found.value:z.4f}"
    return table("Every part", note, [column("part"), column("adds", 4, bar=True)], rows, name="All parts")
