"""What a release needs beside the sources: the page, which git does not have, and a README to be read elsewhere."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BUILT = tuple(
    f"{name}.{end}" for name in ("panels", "weights", "paths", "page", "widget", "live") for end in ("js", "css")
)
THEMED = re.compile(r'<picture>.*?<img src="([^"]+)" alt="([^"]+)">.*?</picture>', re.S)
RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|mailto:)([^)\s]+)\)")


def read_elsewhere(text: str, address: str | None) -> str:
    """Lead a page's relative links and images to the repository; without an address leave the words and no link.

    address: of the repository, as GitHub has them.
    """

    def placed(found: re.Match[str]) -> str:
        image, words, place = found.groups()
        if address is None:
            return "" if image else words
        between = "" if place.startswith("#") else "/raw/main/" if image else "/blob/main/"
        return f"{image}[{words}]({address}{between}{place})"

    return RELATIVE.sub(placed, THEMED.sub(r"![\2](\1)", text))


class PageHook(BuildHookInterface):
    """Looks for the built page before a wheel or an sdist is made, and puts the lessons into a wheel.

    An editable install may do without: it finds the lessons in the clone.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise FileNotFoundError, in one line, where a part of the page is missing."""
        if version == "editable":
            return
        folder = Path(self.root) / "src" / "regard" / "web" / "built"
        missing = [name for name in BUILT if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"a release carries the page, and {missing[0]} is not built: run make page first")
        if self.target_name == "wheel":
            lessons = Path(self.root) / "docs" / "lessons"  # which regard lesson runs
            for file in (*lessons.rglob("*.py"), *lessons.rglob("*.json")):
                build_data["force_include"][str(file)] = f"regard/lessons/{file.relative_to(lessons).as_posix()}"
            articles = Path(self.root) / "docs" / "articles"  # which regard article runs
            for file in articles.rglob("*.py"):
                build_data["force_include"][str(file)] = f"regard/articles/{file.relative_to(articles).as_posix()}"


class ReadmeHook(MetadataHookInterface):
    """Makes the long description of README.md."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme; the repository's address is the url called Repository, where pyproject.toml has one."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": read_elsewhere(text, address)}
