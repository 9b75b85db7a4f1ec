"""The lessons' drawings, for articles that run as files: this package has
their folder."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[2] / "lessons" / "drawings")]
