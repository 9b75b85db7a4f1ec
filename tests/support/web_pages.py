"""Read a page's file as a browser does, and compute its weights as web/src/data/format.ts says, in float64."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.web import html_file
from regard.web.numbers import NumberStore

SCRIPT, STYLE = "document.title = 1 < 2 && '<!-- </script>';", "main { color: black }"


def build_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a built page that shows nothing stand in for the real one, so that no test waits for Node."""
    folder.mkdir()
    for name in (*html_file.BUNDLES, "live"):
        (folder / f"{name}.js").write_text(SCRIPT)
        (folder / f"{name}.css").write_text(STYLE)
    monkeypatch.setattr(html_file, "BUILT", folder)


class Parsed(HTMLParser):
    """A file's elements: of each its tag, attributes and the text in it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.text: list[str] = []
        self.inside = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        self.inside = True

    def handle_endtag(self, _: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.elements[-1][2].append(data)
        if not self.inside or self.elements[-1][0] not in ("script", "style"):
            self.text.append(data)

    def scripts(self) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(text)) for tag, attributes, text in self.elements if tag == "script"]


class Numbers:
    """Numbers by where they are, and what a page's data says of them."""

    def __init__(self, blobs: dict[int, bytes]) -> None:
        self.blobs = blobs

    def numbers(self, says: dict[str, Any]) -> np.ndarray:
        kind = np.dtype(says["dtype"]).newbyteorder("<")
        planes = np.frombuffer(self.blobs[says["at"]], np.uint8).reshape(kind.itemsize, -1)
        return planes.T.copy().reshape(-1).view(kind).reshape(says["shape"])

    def vectors(self, says: dict[str, Any]) -> np.ndarray:
        values = self.numbers(says["values"])
        assert values.dtype == np.int16
        return (values.astype(np.float32) * self.numbers(says["scales"])[..., None]).astype(np.float64)

    def weights(self, call: dict[str, Any]) -> np.ndarray:
        """The weights (H, L, S) of a call."""
        query, key = self.vectors(call["query"]), self.vectors(call["key"])
        heads, length, width = query.shape
        size = key.shape[1]
        assert (heads, key.shape[0], width) == (call["heads"], call["key_heads"], call["width"])
        key = key.repeat(heads // call["key_heads"], 0)
        scores = call["scale"] * (query @ key.transpose(0, 2, 1))
        if call["softcap"] is not None:
            scores = call["softcap"] * np.tanh(scores / call["softcap"])
        scores = scores + self.bias(call["bias"], length, size)
        scores = np.where(self.mask(call["mask"], length, size), scores, -np.inf)
        row_max, row_sum = self.numbers(call["row_max"]), self.numbers(call["row_sum"])
        assert row_max.shape == row_sum.shape == (heads, length)
        safe = np.where(row_max == -np.inf, 0, row_max).astype(np.float64)[..., None]
        weights = np.exp(scores - safe) / np.where(row_sum == 0, 1, row_sum)[..., None]
        return np.where(np.isin(np.arange(heads), call["ablated"])[:, None, None], 0, weights)

    def bias(self, says: dict[str, Any] | None, length: int, size: int) -> np.ndarray | float:
        if says is None:
            return 0.0
        values = self.numbers(says["values"]).astype(np.float64)
        assert values.shape[0] == says["heads"]
        if says["kind"] == "keys":
            return values[:, None, :]
        if says["kind"] == "dense":
            return values
        i, j = np.arange(length)[:, None], np.arange(size)
        return values[:, j - i + length - 1]

    def mask(self, says: dict[str, Any] | None, length: int, size: int) -> np.ndarray:
        """Where a query may attend to a key, (1 or H, L, S)."""
        i, j = np.arange(length)[:, None], np.arange(size)
        if says is None:
            return np.ones((1, length, size), bool)
        if says["kind"] == "band":
            low = -length if says["low"] is None else says["low"]
            high = size if says["high"] is None else says["high"]
            return ((low <= j - i) & (j - i <= high))[None]
        first, starts, ends = (self.numbers(says[name]) for name in ("first", "starts", "ends"))
        assert first.shape == (says["heads"], length + 1)
        allowed = np.zeros((says["heads"], length, size), bool)
        for head in range(says["heads"]):
            for row in range(length):
                for run in range(first[head, row], first[head, row + 1]):
                    assert starts[run] < ends[run]
                    allowed[head, row, starts[run] : ends[run]] = True
        return allowed

    def overview(self, says: dict[str, Any]) -> np.ndarray:
        """The mean weights of the cells of an overview, (H, rows, cols)."""
        shares = (self.numbers(says["values"]) / 65535.0) ** 2
        return np.array(says["largest"])[:, None, None] * shares


class Read(Numbers):
    """A page read from its file: its data and its numbers."""

    def __init__(self, file: Path) -> None:
        self.html = file.read_text(encoding="utf-8")
        self.parsed = Parsed(self.html)
        scripts = {str(each["id"]): text for each, text in self.parsed.scripts() if "id" in each}
        self.data: dict[str, Any] = json.loads(scripts.pop("regard-data"))
        assert all(re.fullmatch(r"numbers-\d+", name) for name in scripts)
        super().__init__({int(name[8:]): zlib.decompress(base64.b64decode(text)) for name, text in scripts.items()})


def from_byte_planes(planes: bytes, dtype: str, shape: list[int]) -> np.ndarray:
    """Read what `byte_planes` wrote."""
    kind = np.dtype(dtype).newbyteorder("<")
    parts = np.frombuffer(planes, np.uint8).reshape(kind.itemsize, -1)
    return np.ascontiguousarray(parts.T).reshape(-1).view(kind).reshape(shape).astype(dtype)


def stored(store: NumberStore) -> Numbers:
    """The numbers of a store, as they are read."""
    return Numbers({at: zlib.decompress(blob) for at, blob in enumerate(store.blobs)})


def check_call(call: Any, weights: Any, numbers: Numbers) -> np.ndarray:
    """Hold the weights that a page's call gives against a map's, all of them; rows sum to 1, less what a sink takes."""
    expected = weights.dense().double().cpu().numpy()
    found = numbers.weights(call)
    assert found.shape == expected.shape
    if expected.size:
        assert abs(found - expected).max() <= call["difference"] + 1e-6
        seen = weights.valid.cpu().numpy()
        total = found.sum(-1)
        np.testing.assert_array_equal(total[~seen], 0)
        if weights.rule.sinks is None:
            np.testing.assert_allclose(total[seen], 1, atol=1e-6)
        else:
            row_max, row_sum = numbers.numbers(call["row_max"]), numbers.numbers(call["row_sum"])
            share = np.exp(np.array(call["sinks"])[:, None] - row_max) / row_sum
            np.testing.assert_allclose(total + share, 1, atol=1e-6)
    return found


def check_page(page: Read, sides: Any) -> None:
    """Hold every call of a page, of all layers, against those of some traces."""
    maps = [side.attention[call] for side in sides for call in side.attention.calls]
    maps += [side.cross[call] for side in sides for call in side.cross.calls]
    assert len(maps) == len(page.data["calls"])
    for call, weights in zip(page.data["calls"], maps, strict=True):
        check_call(call, weights, page)


def decoded(client: Any, name: str, numbers: dict[str, Any]) -> np.ndarray:
    """Numbers of a page as a server gives them. client: a browser's stand-in. name: of the page."""
    answer = client.get(f"/api/pages/{name}/numbers/{numbers['at']}")
    assert answer.headers["content-type"] == "application/octet-stream"
    return from_byte_planes(zlib.decompress(answer.content), numbers["dtype"], numbers["shape"])
