"""A word's occurrences as a map in the served page: python -m benchmarks.cloud [20000 200000]

Makes a store of so many occurrences of one word in sentences made up, gives them three senses at random places of the
map, serves the page of them, opens it in Chromium, and prints how long that takes, how long frames take while the map
is dragged, and how long a sentence takes to come. How long a store takes to find senses is not measured here.
"""

import argparse
import queue
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

from benchmarks.measure import machine
from regard.corpus import schema
from regard.corpus.asking.clusters import Clusters
from regard.corpus.asking.occurrences import look_up
from regard.corpus.questions.senses.answer import Sense, Senses
from regard.corpus.schema import Manifest, ModelSummary, ShardSummary
from regard.corpus.settings import Settings
from regard.corpus.shard_reader import sha256_of_shard_file
from regard.corpus.store import Store
from regard.corpus.writing.store_folder import ShardTables, write_shard
from regard.server.corpora import senses_page
from regard.server.page_cache import CachedPage
from regard.server.serve import serve

WORD, SENTENCES, SHARD = "bank", 50, 10_000  # sentences of a document, occurrences of a shard
PLACES = ("river", "street", "meadow", "harbour", "market", "valley", "square", "forest")
DOINGS = ("sat down", "waited long", "talked at ease", "stood apart", "laughed aloud", "slept", "sang", "fished")
FRAMES = """() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.painted = []; window.frames = [];
  window.requestAnimationFrame = (f) => ask((t) => {
    const start = performance.now();
    f(t);
    window.painted.push(performance.now() - start);
    window.frames.push(t);
  });
}"""


def make_store(folder: Path, count: int) -> None:
    """Write a store of so many occurrences of one word."""
    draws, shards = np.random.default_rng(0), []
    for number, first in enumerate(range(0, count, SHARD)):
        size, rows, texts = min(SHARD, count - first), [], []
        for part, begin in enumerate(range(0, size, SENTENCES)):
            text = ""
            for n in range(begin, min(size, begin + SENTENCES)):
                there = f"Near the {PLACES[draws.integers(8)]} they {DOINGS[draws.integers(8)]} by the "
                start = len(text) + len(there)
                text += f"{there}{WORD} for the {first + n}th time. "
                rows.append((part, start))
            texts.append({"document": f"{number}-{part}", "start": 0, "end": len(text), "text": text, "source": "made",
                          "line": None, "metadata": []})  # fmt: skip
        listed = [{"word": WORD, "form": WORD, "lemma": None, "document": f"{number}-{part}", "part": part,
                   "start": start, "end": start + len(WORD), "window": 0, "position": 1, "tokens": 1}
                  for part, start in rows]  # fmt: skip
        tables = ShardTables(
            pa.Table.from_pylist(texts, schema=schema.texts()),
            pa.Table.from_pylist(listed, schema=schema.rows(6, statistics=False, sources=False)),
            np.zeros((len(rows), 1, 1), np.float16),
            schema.spans().empty_table(),
        )
        write_shard(folder / "shards", f"shard{number}", tables)
        index = sha256_of_shard_file(folder / "shards" / f"shard{number}" / "index.json")
        shards.append(ShardSummary(f"shard{number}", len(texts), len(rows), len(rows), index))
    settings = Settings(statistics=False).to_json()
    Manifest(ModelSummary("made", "", "", 6, 12, 1), settings, {}, [], [5], shards, complete=True).write(folder)


def made_senses(store: Store) -> Senses:
    """Give all occurrences of a store one of three senses and a place around its middle."""
    found, draws = look_up(store, WORD), np.random.default_rng(1)
    labels = np.sort(draws.choice(3, len(found), p=(0.6, 0.3, 0.1)))
    middles = np.array([[0.0, 0.0], [0.5, 0.2], [-0.3, 0.5]])
    points = (middles[labels] + 0.12 * draws.standard_normal((len(found), 2))).astype(np.float32)
    sizes = np.bincount(labels, minlength=3)
    senses = tuple(Sense(str(n + 1), int(size), size / len(found), 0.1, (), ()) for n, size in enumerate(sizes))
    clusters = Clusters(labels, np.eye(3, 1, dtype=np.float32), draws.random(len(found)), {})
    return Senses(WORD, 5, senses, (), found, clusters, points, (0.1, 0.08))


def measure(tab: Any, link: str) -> None:
    for again in ("", ", a second time"):
        start = time.perf_counter()
        tab.goto(link)
        tab.wait_for_selector(".cloud[data-ready=true]", timeout=60_000)
        tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        print(f"  opened{again}: {time.perf_counter() - start:.2f} s", flush=True)
        tab.wait_for_timeout(1000)
        link = tab.url
        tab.goto("about:blank")
    tab.goto(link)
    tab.wait_for_selector(".cloud[data-ready=true]", timeout=60_000)
    tab.locator(".cloud canvas").scroll_into_view_if_needed()
    box = tab.locator(".cloud canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.evaluate(FRAMES)
    for zoom, name in ((0, "the whole"), (2, "4 times"), (4, "16 times")):
        tab.focus(".cloud")
        tab.keyboard.press("0")
        for _ in range(max(zoom, 1)):
            tab.keyboard.press("+")
        if zoom == 0:
            tab.keyboard.press("-")
        tab.wait_for_timeout(600)
        tab.evaluate("() => { window.painted = []; window.frames = []; }")
        tab.mouse.move(x, y)
        tab.mouse.down()
        for n in range(60):
            tab.mouse.move(x + 2 * n, y + n)
        tab.mouse.up()
        tab.wait_for_timeout(300)
        painted, frames = (np.array(tab.evaluate(f"window.{each}")) for each in ("painted", "frames"))
        apart = np.diff(frames)
        middle, high = np.median(painted), np.quantile(painted, 0.95)
        print(
            f"  dragged at {name}: {len(painted)} frames, painting median {middle:.1f}, p95 {high:.1f} ms; "
            f"from frame to frame median {np.median(apart):.1f} ms"
        )
    times = []
    for _ in range(12):
        tab.keyboard.press("ArrowRight")
        start = time.perf_counter()
        tab.wait_for_selector("[data-says] mark", timeout=60_000)
        times.append(time.perf_counter() - start)
    print(f"  a sentence, 60 ms of waiting included: median {1e3 * np.median(times):.0f} ms, "
          f"slowest {1e3 * max(times):.0f} ms")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=[20_000, 200_000])
    for count in parser.parse_args().counts:
        with tempfile.TemporaryDirectory() as folder:
            make_store(Path(folder) / "made.store", count)
            with Store(Path(folder) / "made.store") as store:
                start = time.perf_counter()
                kept = senses_page(store, made_senses(store))
                took = time.perf_counter() - start
                size = f"{took:.1f} s to put together, {kept.size / 1e6:.1f} MB"
                print(f"{count:,} occurrences; the page takes {size}; {machine()}", flush=True)
                show(kept)


def show(kept: CachedPage) -> None:
    """Serve a page and measure it in the browser."""
    links: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: serve([], [], [kept], started=links.put), daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        measure(browser.new_context(viewport={"width": 1000, "height": 900}).new_page(), links.get(timeout=60))
        browser.close()


if __name__ == "__main__":
    main()
