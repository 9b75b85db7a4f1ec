"""Remember in 21 to 43 bytes each which ids of documents there were, and where."""

from array import array
from hashlib import blake2b

_FULL = 0.75  # of the table: beyond it, looking up becomes slow
_LINES = 1 << 40  # a place is a file's number and a line in one integer


class SeenIds:
    """Ids that were seen, and where.

    They are told apart by 64 bits of their hash: of 10 million, two are taken for one once in 370,000 corpora.
    """

    def __init__(self) -> None:
        self._count = 0
        self._slots(1 << 10)

    def add(self, id: str, file: int, line: int | None) -> tuple[int, int | None] | None:
        """Add an id and its place, (file, line); where it was there already give its first place."""
        key = int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "little") or 1  # 0: a free slot
        slot = self._find(key)
        if self._keys[slot]:
            number, at = divmod(self._places[slot], _LINES)
            return number, at or None
        self._keys[slot], self._places[slot] = key, file * _LINES + (line or 0)
        self._count += 1
        if self._count > _FULL * len(self._keys):
            self._grow()
        return None

    def _find(self, key: int) -> int:
        """Find a key's slot, or the free one where it belongs."""
        last = len(self._keys) - 1
        slot = key & last
        while self._keys[slot] not in (0, key):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        """Move all to a table of twice the size."""
        keys, places = self._keys, self._places
        self._slots(2 * len(keys))
        for key, place in zip(keys, places, strict=True):
            if key:
                slot = self._find(key)
                self._keys[slot], self._places[slot] = key, place

    def _slots(self, count: int) -> None:
        self._keys, self._places = array("Q", bytes(8 * count)), array("Q", bytes(8 * count))
