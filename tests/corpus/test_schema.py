"""The columns of a store's tables, as the documentation names them."""

import re

from regard.corpus import schema
from regard.corpus.writing.attention_sums import SUMS
from tests.support import ROOT


def test_the_page_names_every_column() -> None:
    page = (ROOT / "docs" / "commands" / "embed.md").read_text("utf-8")
    columns = schema.texts().names + schema.rows(6, statistics=True, sources=True).names + schema.spans().names
    told = set(re.findall(r"\w+", page))
    assert set(columns) <= told


def test_sizes_of_lists() -> None:
    fields = schema.rows(7, statistics=True, sources=True)
    assert [fields.field(name).type.list_size for name in schema.STATISTICS] == [7] * 4
    assert [fields.field(name).type.list_size for name in schema.SOURCES] == [7 * schema.TOP] * 3
    assert not set(schema.STATISTICS) & set(schema.rows(7, statistics=False, sources=False).names)
    assert schema.heads().names == ["layer", "head", *SUMS]
    assert schema.quarantine().names == ["source", "line", "reason"]
