"""The page of known limits gives the numbers that the code has."""

import re

import pytest

from regard import files
from regard.corpus import checksums, schema, shard_reader, store_views
from regard.corpus.reading import document, streams, tables
from regard.model_files import config_limits, folder, gguf_header, weight_headers
from regard.server import work
from regard.tensor_files import header
from regard.text import tokenizer_limits
from regard.web import sizes
from tests.support import ROOT

MIB = 1 << 20
SERVED = work.Limits()
ROWS = {
    "a page in one file": [f"{sizes.LIMIT // 10**6} MB"],
    "a checkpoint": [
        f"{weight_headers.MOST:,} tensors", f"{header.HEADER_LIMIT // MIB} MiB",
        f"GGUF: {gguf_header.TENSORS:,} tensors",
        f"{gguf_header.ENTRIES:,} entries", f"{gguf_header.ITEMS:,} items",
    ],
    "a config": [
        f"lists of {config_limits.ITEMS:,}", f"{config_limits.MOST:,} labels", f"{config_limits.LONGEST:,} positions"
    ],
    "a tokenizer": [
        f"{tokenizer_limits.LARGEST // MIB} MiB", f"{tokenizer_limits.VOCABULARY:,} pieces",
        f"{tokenizer_limits.ADDED:,} of them", f"{tokenizer_limits.STEPS} steps",
        f"{tokenizer_limits.GROWTH:,} times", f"{tokenizer_limits.AROUND:,} ids",
    ],
    "JSON that is read whole": [f"{files.LARGEST // MIB} MiB"],
    "a text of a corpus": [
        f"line {streams.LONGEST_LINE // MIB} MiB", f"{tables.LONGEST_CELL // MIB} MiB", f"{document.MOST:,} characters"
    ],
    "a shard of a store": [
        f"{checksums.LARGEST // MIB} MiB", f"{schema.ROW_GROUP:,} rows", f"{shard_reader.UNPACKED // MIB} MiB",
        f"{shard_reader.RATIO} times",
    ],
    "`Store.sql`": [f"{store_views.MEMORY // MIB} MB"],
    "a request to `regard serve`": [
        f"{SERVED.body // 10**6} MB", f"{SERVED.texts} texts", f"{SERVED.characters:,} characters",
        f"{SERVED.waiting} wait",
    ],
}  # fmt: skip


@pytest.mark.parametrize("of", ROWS)
def test_a_row_gives_what_the_code_has(of: str) -> None:
    (row,) = re.findall(rf"^\| {re.escape(of)}.*", (ROOT / "docs" / "limits.md").read_text("utf-8"), re.M)
    for said in ROWS[of]:
        assert said in row


def test_every_row_is_looked_at() -> None:
    text = (ROOT / "docs" / "limits.md").read_text("utf-8").partition("\n## Models")[0]
    rows = re.findall(r"^\| (?!of |-)(.+?) \|", text, re.M)
    assert [row for row in rows if not row.startswith(tuple(ROWS))] == ["a text"]  # it depends on the model
    assert folder.LARGEST == tokenizer_limits.LARGEST
