"""Refuse to build a release without the page: `make page` builds it, and git does not have it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = tuple(
    f"{name}.{end}" for name in ("panels", "weights", "paths", "page", "widget", "live") for end in ("js", "css")
)


class PageHook(BuildHookInterface):
    """Looks for the built page before a wheel or an sdist is made. An editable install may do without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise FileNotFoundError, in one line, where a part of the page is missing."""
        if version == "editable":
            return
        folder = Path(self.root) / "src" / "regard" / "web" / "built"
        missing = [name for name in BUILT if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"a release carries the page, and {missing[0]} is not built: run make page first")
