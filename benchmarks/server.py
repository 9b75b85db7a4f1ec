"""Speed and memory of `regard serve`: python -m benchmarks.server [tiles|beside|clients|panning|first] [--tokens N]

tiles: a saved attention map of N × N with rotary positions (by default 100,000; 4 heads of width 64, causal), opened by
a real server and asked for over HTTP: the pass over it, then tiles of every zoom at random places, each new, one head
and the mean of all; the largest memory of the server. beside: tiles of that map while somebody pans over it for 30
seconds, alone and while the server makes the pass over a second such map. clients: eight at once, each with texts of
its own on the default model. panning: frames a second while the mouse drags that map in Chromium, its tiles on their
way, at several zooms. first: in Chromium, from the click on each example of the first screen to its first picture, on a
server that has shown them all once.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import machine
from regard.attention.attention_map import AttentionMap
from regard.attention.masks import causal
from regard.attention.scores import ScoreRule

HEADS, WIDTH, SIDE, TILES = 4, 64, 128, 40


@contextmanager
def served(*arguments: str) -> Iterator[tuple[int, str, int]]:
    """A server: its port, its token, its process."""
    command = [sys.executable, "-m", "regard", "serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            found = re.search(r":(\d+)/\?token=(\S+)", process.stdout.readline())
            assert found
            yield int(found[1]), found[2], process.pid
        finally:
            process.terminate()


def ask(connection: http.client.HTTPConnection, token: str, path: str, body: Any = None, post: bool = False) -> bytes:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body)
    connection.request("POST" if post or body is not None else "GET", path, content, headers)
    answer = connection.getresponse()
    found = answer.read()
    assert answer.status == 200, found
    return found


def rotary_map(tokens: int) -> AttentionMap:
    """A map of so many tokens, its queries and keys turned by their positions."""
    draws = torch.Generator().manual_seed(0)
    angles = torch.arange(tokens)[:, None] / torch.pow(10_000, torch.arange(WIDTH // 2) / (WIDTH // 2))

    def turned() -> torch.Tensor:
        even, odd = (base * 2 + torch.randn(1, HEADS, tokens, WIDTH, generator=draws)).chunk(2, -1)
        return torch.cat([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1)

    base = torch.randn(1, HEADS, 1, WIDTH, generator=draws)
    return AttentionMap(turned(), turned(), ScoreRule(scale=WIDTH**-0.5, mask=causal()), offset=0, ndim=3)


def tiles(tokens: int) -> None:
    draws, at = np.random.default_rng(0), "/api/pages/file-0/calls/0"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.safetensors"
        rotary_map(tokens).save(file)
        with served("--open", str(file)) as (port, token, process):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
            ask(connection, token, "/api/pages/file-0")
            start = time.perf_counter()
            ask(connection, token, f"{at}/pass", post=True)
            took = time.perf_counter() - start
            print(f"{tokens:,} tokens, {HEADS} heads: the pass {took:.0f} s, {took / HEADS:.1f} s a head; {machine()}")
            for head, name in (("?head=1", "one head"), ("", "mean of heads")):
                for level in range(max(1, (tokens - 1).bit_length() - 6)):
                    most, times = -(-tokens // (SIDE << level)), []
                    for _ in range(TILES):
                        a, b = sorted(draws.integers(0, most, 2))
                        start = time.perf_counter()
                        ask(connection, token, f"{at}/tiles/{level}/{b}/{a}{head}")
                        times.append(1e3 * (time.perf_counter() - start))
                    middle, high = np.median(times), np.quantile(times, 0.95)
                    print(f"{name}, cells of {1 << level:>5}: median {middle:6.1f} ms, p95 {high:6.1f} ms")
            status = Path(f"/proc/{process}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+)", status)
            assert found
            print(f"the server's largest memory: {int(found[1]) / 1024:,.0f} MiB")


def beside(tokens: int, seconds: float = 30.0) -> None:
    """Pan over a map, four tiles in sight at once, before and while the server makes the pass over another one."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.safetensors" for name in ("first", "second")]
        for file in files:
            rotary_map(tokens).save(file)
        with served("--open", str(files[0]), "--open", str(files[1])) as (port, token, _):

            def whole_pass(page: int) -> None:
                other = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
                ask(other, token, f"/api/pages/file-{page}/calls/0/pass", post=True)

            whole_pass(0)
            for name, runs in (("alone", False), ("while a pass runs", True)):
                other = threading.Thread(target=whole_pass, args=(1,))
                if runs:
                    other.start()
                times = _panned(port, token, tokens, seconds, other if runs else None)
                middle, high = np.median(times), np.quantile(times, 0.95)
                print(
                    f"{len(times)} tiles, {name}: median {middle:.0f} ms, p95 {high:.0f} ms, slowest "
                    f"{max(times):.0f} ms; {machine()}",
                    flush=True,
                )
                if runs:
                    other.join()


def _panned(port: int, token: str, tokens: int, seconds: float, other: threading.Thread | None) -> list[float]:
    """The times of tiles, in ms, of somebody who pans at one zoom after another; no longer than another thread runs."""
    draws, times, until = np.random.default_rng(0), list[float](), time.perf_counter() + seconds
    lock = threading.Lock()

    def look(level: int, row: int, col: int, head: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        start = time.perf_counter()
        ask(connection, token, f"/api/pages/file-0/calls/0/tiles/{level}/{row}/{col}{head}")
        with lock:
            times.append(1e3 * (time.perf_counter() - start))

    while time.perf_counter() < until and (other is None or other.is_alive()):
        level, head = int(draws.integers(0, 8)), str(draws.choice(["", "?head=1"]))
        most = -(-tokens // (SIDE << level)) - 2
        a, b = sorted(draws.integers(0, most, 2))
        for step in range(4):  # each time the next column of tiles comes into sight
            col = min(int(a) + step, most)
            tiles = [threading.Thread(target=look, args=(level, int(b) + n, col, head)) for n in range(2)]
            for each in tiles:
                each.start()
            for each in tiles:
                each.join()
            time.sleep(0.05)
    return times


def panning(tokens: int) -> None:
    """Drag the map at every second zoom, over places not seen before."""
    from benchmarks.page import FRAMES, WATCH, browser

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.safetensors"
        rotary_map(tokens).save(file)
        with served("--open", str(file)) as (port, token, _), browser() as chromium:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
            ask(connection, token, "/api/pages/file-0/calls/0/pass", post=True)
            tab = chromium.new_page(viewport={"width": 1100, "height": 900})
            tab.set_default_timeout(120_000)
            tab.add_init_script(WATCH)
            tab.goto(f"http://127.0.0.1:{port}/?token={token}")
            tab.wait_for_selector(".map[data-state=exact]")
            for zoom in range(0, (tokens - 1).bit_length() - 6, 2):
                tab.evaluate("press('Home')")
                for _ in range(zoom):
                    tab.evaluate("press('+')")
                tab.evaluate("settled()")
                box = tab.locator(".map canvas").first.bounding_box()
                x, y = box["x"] + 0.8 * box["width"], box["y"] + 0.8 * box["height"]
                tab.mouse.move(x, y)
                tab.mouse.down()
                tab.evaluate(FRAMES)
                for n in range(1, 121):
                    tab.mouse.move(x - 4 * n, y - 4 * n)
                times = np.unique(tab.evaluate("frames_at"))  # each drag adds a watcher: a frame's time comes again
                tab.mouse.up()
                start = time.perf_counter()
                tab.evaluate("settled()")
                took = time.perf_counter() - start
                between = np.diff(times)
                says = tab.locator(".state").inner_text()
                print(
                    f"panning: {1e3 * len(between) / (times[-1] - times[0]):.0f} frames a second, 95 of 100 at "
                    f"{1e3 / np.quantile(between, 0.95):.0f} or more; exact {took:.2f} s after it; {says!r}",
                    flush=True,
                )


CLICKED = """
async (n) => {
  const start = performance.now();
  document.querySelectorAll("[data-example]")[n].click();
  const picture = () => {
    const main = document.querySelector("[role=tabpanel] [data-main]");
    if (!main || (main.dataset.state ?? "exact") !== "exact") return false;
    return main.matches(".map") || main.querySelector("svg, canvas, td[data-value]");
  };
  while (!picture()) await frame();
  await frame();
  return performance.now() - start;
}
"""


def first(each: int = 5) -> None:
    """Click on every example, once to warm the server up and then so many times, each from a fresh first screen."""
    from benchmarks.page import WATCH, browser

    with served() as (port, token, _), browser() as chromium:
        tab = chromium.new_page(viewport={"width": 1300, "height": 850})
        tab.set_default_timeout(120_000)
        tab.add_init_script(WATCH)

        def clicked(n: int) -> float:
            tab.goto("about:blank")
            tab.goto(f"http://127.0.0.1:{port}/?token={token}")
            tab.locator("[data-example]").last.wait_for()
            return float(tab.evaluate(CLICKED, n)) / 1e3

        tab.goto(f"http://127.0.0.1:{port}/?token={token}")
        tab.locator("[data-example]").last.wait_for()
        names = tab.locator("[data-example]").all_inner_texts()
        for n in range(len(names)):
            clicked(n)
        times = [[clicked(n) for _ in range(each)] for n in range(len(names))]
        for name, own in zip(names, times, strict=True):
            print(
                f"{name}: the first picture after {np.median(own):.2f} s (median), {max(own):.2f} s at most", flush=True
            )
        middle, most = np.median(times), np.max(times)
        print(f"all {len(names) * each} clicks: median {middle:.2f} s, at most {most:.2f} s; {machine()}")


def clients(count: int = 8, each: int = 6) -> None:
    times: list[float] = []

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        for n in range(each):
            text = (
                f"Client {number} wrote sentence {n}: the boat lay on the bank of the river until the {number + n}th."
            )
            start = time.perf_counter()
            page = json.loads(ask(connection, token, "/api/traces", {"texts": [text]}))
            times.append(time.perf_counter() - start)
            assert page["texts"][0]["text"] == text

    with served("A first text.") as (port, token, _):
        client(99)
        times.clear()
        threads = [threading.Thread(target=client, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(times) == count * each
    middle, high = np.median(times), np.quantile(times, 0.95)
    print(f"{count} clients at once, {each} texts each: median {middle:.2f} s, p95 {high:.2f} s a text; {machine()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("tiles", "beside", "clients", "panning", "first"))
    parser.add_argument("--tokens", type=int, default=100_000)
    given = parser.parse_args()
    if given.what in (None, "tiles"):
        tiles(given.tokens)
    if given.what in (None, "beside"):
        beside(given.tokens)
    if given.what in (None, "clients"):
        clients()
    if given.what in (None, "panning"):
        panning(given.tokens)
    if given.what in (None, "first"):
        first()


if __name__ == "__main__":
    main()
