"""Open saved traces and attention maps for the server, as pages to zoom into."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.attention.attention_map import AttentionMap
from regard.server.kept import Kept
from regard.server.limits import Limits
from regard.server.long_texts import long_page, map_page
from regard.server.traces import longest
from regard.tensor_files.description import MAP, format_of
from regard.trace.file import open as open_trace
from regard.web.assemble import page_of

if TYPE_CHECKING:
    from regard.corpus.store import Store


def open_files(files: Sequence[Path], limits: Limits) -> list[Kept]:
    """Read files, each a page. Raises RegardError for what is neither a saved trace nor a saved map."""
    return [open_file(file, limits) for file in files]


def open_file(file: Path, limits: Limits) -> Kept:
    """Read one file. Raises RegardError as `regard.open` and `AttentionMap.load`."""
    if format_of(file) == MAP:
        weights = AttentionMap.load(file)
        length, size = weights.shape[-2:]
        return map_page(weights.crop(0, slice(0, length), slice(0, size)), file.name)
    opened = open_trace(file)
    traces = opened if isinstance(opened, list) else [opened]
    if any(longest(each) > limits.whole for each in traces):
        return long_page(traces)
    return Kept(page_of(traces))


def open_folders(folders: Sequence[Path]) -> "list[Store]":
    """Open corpus stores. Raises RegardError for what is none, and where the extra `corpus` is not installed."""
    if not folders:
        return []
    from regard.corpus.extra import needed
    from regard.corpus.store import Store

    needed("duckdb")
    return [Store(folder) for folder in folders]
