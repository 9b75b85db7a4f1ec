"""What `regard embed` did, as JSON."""

from typing import Any

from regard.corpus.embed_texts import EmbedReport


def embed_data(report: EmbedReport, missing: str = "") -> dict[str, Any]:
    """Return the counts of a store and what could not be read, for --json. missing: as `missing_words` says it."""
    return {
        "store": str(report.store),
        "counts": report.counts,
        "shards_built": report.built,
        "seconds": report.seconds,
        "tokens_per_second": report.new_tokens / report.seconds if report.new_tokens else None,
        "quarantined": [{"source": each.source, "line": each.line, "reason": each.reason} for each in report.rejected],
        "notes": [*report.notes, *([missing] if missing else [])],
    }
