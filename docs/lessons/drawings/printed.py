"""The figures of four articles, as they print them. Lessons, articles and tests compare with these and have no copy."""

import json
from pathlib import Path

PRINTED = Path(__file__).with_name("printed.json")


def printed(article: str) -> dict:
    """Read the figures of "one sentence", "contextual embeddings", "formula" or "river and finance"."""
    return json.loads(PRINTED.read_text("utf-8"))[article]
