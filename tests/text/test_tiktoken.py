"""cl100k_base: its tokens where its ranks are at hand, and what is said where they are not."""

from pathlib import Path

import pytest

from regard import RegardError
from regard.text.tiktoken import CACHED, cl100k_base, cl100k_tokens
from tests.support import SHARED

tiktoken = pytest.importorskip("tiktoken")
RANKS = SHARED / "tokenizers" / CACHED


class Bytes:
    """An encoding of one token a byte, but for one pair: what cl100k_tokens asks of tiktoken, without its ranks."""

    def encode_ordinary(self, text: str) -> list[int]:
        ids, rest = [], text.encode()
        while rest:
            pair = rest.startswith(b"ab")
            ids.append(256 if pair else rest[0])
            rest = rest[2 if pair else 1 :]
        return ids

    def decode_single_token_bytes(self, number: int) -> bytes:
        return b"ab" if number == 256 else bytes([number])


@pytest.mark.parametrize("text", ["abc ab", "é", "🙂ab", "a鿋b ❄️", "\n\tab"])
def test_tokens_cover_the_text(text: str) -> None:
    tokens = cl100k_tokens(text, Bytes())
    assert [t.id for t in tokens] == Bytes().encode_ordinary(text)
    covered = set()
    for token in tokens:
        covered |= set(range(token.start, token.end))
        if not token.text.startswith("\\x"):
            assert token.text == text[token.start : token.end]
        else:
            assert len(text[token.start : token.end].encode()) > 1
    assert covered == set(range(len(text)))


@pytest.mark.shared
@pytest.mark.skipif(not RANKS.exists(), reason=f"no file {RANKS} (REGARD_SHARED names another place)")
def test_the_published_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(RANKS.parent))
    encoding = cl100k_base()
    tokens = cl100k_tokens("What is the capital of France?", encoding)
    assert [t.id for t in tokens] == [3923, 374, 279, 6864, 315, 9822, 30]
    assert [t.text for t in tokens] == ["What", " is", " the", " capital", " of", " France", "?"]


def test_no_ranks_at_hand(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))

    def nowhere(name: str) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(tiktoken, "get_encoding", nowhere)
    with pytest.raises(
        RegardError, match=r"are not available \(ConnectionError\): run .*, or save its ranks .*TIKTOKEN_CACHE_DIR"
    ):
        cl100k_base()
