"""What embed did, as JSON."""

import json
from pathlib import Path

from regard.corpus.embed_texts import EmbedReport
from regard.corpus.reading.document import Rejected
from regard.views.embedded import embed_data


def test_counts_and_rejected() -> None:
    report = EmbedReport(Path("s"), {"rows": 9}, [Rejected("a.txt", None, "empty")], 1, 30, 2.0, ("1 document gone",))
    assert json.loads(json.dumps(embed_data(report))) == {
        "store": "s",
        "counts": {"rows": 9},
        "shards_built": 1,
        "seconds": 2.0,
        "tokens_per_second": 15.0,
        "quarantined": [{"source": "a.txt", "line": None, "reason": "empty"}],
        "notes": ["1 document gone"],
    }
    assert embed_data(report, "--where: no word 'bnak'")["notes"][-1] == "--where: no word 'bnak'"
    assert embed_data(EmbedReport(Path("s"), {}, [], 0, 0, 2.0))["tokens_per_second"] is None
