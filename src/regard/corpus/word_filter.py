"""Tell in some microseconds which shards may have a word: a Bloom filter each, wrong for one word in a hundred.

Bloom, B. H. (1970): Space/time trade-offs in hash coding with allowable errors. A word that was added is always found;
a shard that is said to have a word in error is read in vain.
"""

import hashlib
from collections.abc import Collection, Iterator

BITS, HASHES = 10, 7  # of each word: with them 0.8 % of other words are taken for one that was added
LEMMA = "\0"  # before a lemma, which is another thing than the word that is spelled so


def make_store_word_filter(words: Collection[str]) -> bytes:
    """Make the filter of some words."""
    size = BITS * max(1, len(words)) // 8 + 1
    found = bytearray(size)
    for word in words:
        for bit in _bits_of_filter_word(word, size):
            found[bit >> 3] |= 1 << (bit & 7)
    return bytes(found)


def may_have(made: bytes, word: str) -> bool:
    """Tell whether a word may have been added to a filter."""
    return bool(made) and all(made[bit >> 3] & 1 << (bit & 7) for bit in _bits_of_filter_word(word, len(made)))


def _bits_of_filter_word(word: str, size: int) -> Iterator[int]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    for n in range(HASHES):
        yield (first + n * step) % (8 * size)
