"""What questions to a store answered, as JSON: `regard find`, `senses`, `shift`."""

from dataclasses import asdict
from typing import Any

from regard.corpus.asking.find import Concordance
from regard.corpus.asking.find_sentences import concordance_sentences
from regard.corpus.asking.sense_sentences import sense_sentences
from regard.corpus.asking.senses import Senses
from regard.corpus.asking.shift import Shift
from regard.corpus.asking.shift_sentences import shift_sentences

VERSION = 1


def find_data(found: Concordance) -> dict[str, Any]:
    """Return a concordance with all its lines."""
    return {"format": "regard find", "version": VERSION, "findings": concordance_sentences(found), **asdict(found)}


def senses_data(found: Senses) -> dict[str, Any]:
    """Return the senses with examples and the words that tell them, and of each occurrence its sense and place."""
    learned = found.learned
    return {
        "format": "regard senses",
        "version": VERSION,
        "word": found.word,
        "findings": sense_sentences(found),
        "told_apart": found.told_apart,
        "layer": found.layer,
        "occurrences": len(found.found),
        "senses": [asdict(each) for each in found.senses],
        "silhouettes": {str(k): value for k, value in found.silhouettes.items()},
        "accuracy": None
        if learned is None
        else {
            "micro": learned.accuracy.micro,
            "macro": learned.accuracy.macro,
            "most_frequent": learned.accuracy.most_frequent,
            "by_word": {word: {"right": r, "asked": n} for word, (r, n, _) in learned.accuracy.by_word.items()},
            "layer": learned.layer,
            "pooling": learned.pooling,
            "tried": [
                {"layer": layer, "pooling": pooling, "accuracy": rate}
                for (layer, pooling), rate in learned.tried.items()
            ],
        },
        "points": [
            {"x": x, "y": y, "sense": found.senses[label].name, "shard": shard, "row": row}
            for (x, y), label, shard, row in zip(
                found.points.tolist(), found.clusters.labels.tolist(), found.found.shard, found.found.row.tolist(),
                strict=True,
            )
        ],
        "axes": list(found.axes),
        "notes": list(found.notes),
    }  # fmt: skip


def shift_data(found: Shift) -> dict[str, Any]:
    """Return the change, its test, and the senses of both groups."""
    return {
        "format": "regard shift",
        "version": VERSION,
        "word": found.word,
        "findings": shift_sentences(found),
        "layer": found.layer,
        "groups": list(found.groups),
        "change": asdict(found.change),
        "permuted": found.permuted,
        "senses": [asdict(each) for each in found.senses],
        "silhouettes": {str(k): value for k, value in found.silhouettes.items()},
        "notes": list(found.notes),
    }
