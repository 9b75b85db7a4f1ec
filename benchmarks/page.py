"""How large pages are and how fast they answer in a real browser: python -m benchmarks.page

    python -m benchmarks.page             # all parts that can be had here
    python -m benchmarks.page small       # MiniLM, and GPT-2's size with random weights, at 512 tokens
    python -m benchmarks.page large       # one layer of SmolLM2 at 8192 tokens: REGARD_SMOLLM2 names its GGUF's folder

Debian's Chromium without a window, driven by playwright; times are taken inside the page. The page must be built.
"""

import argparse
import itertools
import os
import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers

import regard
from benchmarks.measure import machine, verdict

MB = 1e6
BERTVIZ = {128: 107, 256: 432}  # MB for 12 × 12 heads at so many tokens, as its issues tell; it grows with the square
TOKENS, LARGE = 512, 8192
LAYER, HEADS = 5, (0, 3, 4, 6, 8)
FRAME = 1000 / 60
# Kept by every page from its beginning: its workers, and when the first weights stood on it.
WATCH = """
window.workers = [];
window.Worker = class extends Worker { constructor(...given) { super(...given); window.workers.push(this); } };
new MutationObserver(() => {
  if (!window.first && document.querySelector("td[data-value]")) {
    window.first = -1;
    requestAnimationFrame(() => setTimeout(() => (window.first = performance.now())));
  }
}).observe(document, { childList: true, subtree: true });
window.frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
window.opened = async () => { while (!(window.first > 0)) await frame(); return window.first; };
window.map = () => document.querySelector("[data-missing]");
window.press = (key) => map().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
// The milliseconds from an action to the next picture, and to the one in which nothing is missing any more.
window.timed = async (act) => {
  const start = performance.now();
  act();
  await frame();
  const coarse = performance.now() - start;
  while (map().dataset.missing !== "0") await frame();
  return [coarse, performance.now() - start];
};
window.settled = async () => { while (map()?.dataset.state !== "exact") await frame(); };
"""
TILE = """
async ({ head, query, key }) => {
  const region = { head, queries: [query, query + 256], keys: [key, key + 256], rows: 256, cols: 256 };
  const worker = workers.at(-1);
  const start = performance.now();
  await new Promise((done) => {
    worker.addEventListener("message", ({ data }) => data.id === 1e9 && done());
    worker.postMessage({ id: 1e9, question: { kind: "region", call: 0, region } });
  });
  return performance.now() - start;
}
"""
HEAD = """
(head) => timed(() => {
  const select = document.querySelector("[data-choose=head]");
  select.value = head;
  select.dispatchEvent(new Event("change", { bubbles: true }));
})
"""
HOVER = """
async ([x, y]) => {
  const canvas = document.querySelector("canvas");
  const box = canvas.getBoundingClientRect();
  const [clientX, clientY] = [box.left + x * box.width, box.top + y * box.height];
  const start = performance.now();
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, pointerType: "mouse", bubbles: true }));
  await frame();
  while (document.querySelector("[data-weight]").textContent === "…") await frame();
  const { query, key } = document.querySelector(".readout").dataset;
  const weight = Number(document.querySelector("[data-weight]").textContent);
  return [performance.now() - start, Number(query), Number(key), weight];
}
"""
ROW = """
async ({ head, query }) => {
  const worker = workers[0];
  const answer = await new Promise((done) => {
    worker.addEventListener("message", ({ data }) => data.id === 2e9 + query && done(data.value));
    worker.postMessage({ id: 2e9 + query, question: { kind: "row", call: 0, head, query } });
  });
  return [...answer];
}
"""
FRAMES = """
() => {
  window.frames_at = [];
  const note = (time) => { frames_at.push(time); if (frames_at) requestAnimationFrame(note); };
  requestAnimationFrame(note);
}
"""


def main() -> None:
    """Print the figures of the parts that were asked for."""
    parts = {"small": small, "large": large}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}; by default all")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]!r} is no part; there are {', '.join(parts)}")
    print(machine())
    with browser() as chromium, tempfile.TemporaryDirectory() as folder:
        print(f"Chromium {chromium.version}, {os.cpu_count()} processors")
        for name in given.parts or parts:
            print(f"\n{name}: {(parts[name].__doc__ or '').splitlines()[0]}", flush=True)
            parts[name](chromium, Path(folder) / f"{name}.html")


def small(chromium: Any, file: Path) -> None:
    """Files of 512 tokens, and how long from opening them to the first weights."""
    minilm = regard.load(device="cpu")
    config = transformers.GPT2Config(
        vocab_size=minilm.tokenizer.vocab_size, bos_token_id=0, eos_token_id=0
    )  # 12 layers of 12 heads, M 768
    torch.manual_seed(0)
    gpt2 = regard.load(transformers.GPT2Model(config).eval(), tokenizer=minilm.tokenizer, device="cpu")
    for name, model, most in (("MiniLM, 6 × 12 heads", minilm, 7), ("GPT-2's size, 12 × 12 heads", gpt2, 27)):
        text = passage(minilm.tokenizer, TOKENS - 4)
        trace = model.trace(text)
        size = regard.save_page(trace, file, word="bank", title=name, findings=["A sentence."]) / MB
        print(f"  {name}, {len(trace.tokens)} tokens: {size:.2f} MB, target {most} MB{verdict(size, most)}")
        times = [first_picture(chromium, file) for _ in range(5)]
        target = f", target 1.00 s{verdict(statistics.median(times), 1)}" if model is minilm else ""
        print(f"    first weights after {statistics.median(times):.2f} s ({least_and_most(times)}){target}", flush=True)
    for tokens, size in BERTVIZ.items():
        print(f"  BertViz, 12 × 12 heads, {tokens} tokens, as published: {size} MB")


def large(chromium: Any, file: Path) -> None:
    """One layer of SmolLM2, 9 heads over 3 key heads, at 8192 tokens: 604 million weights."""
    folder = Path(os.environ.get("REGARD_SMOLLM2") or "none")
    found = next(iter(sorted(folder.glob("*.gguf"))), None)
    if found is None:
        print("  not here: REGARD_SMOLLM2 names no folder with a GGUF file")
        return
    model = regard.load(found, device="cpu")
    trace = model.trace(passage(model.tokenizer, LARGE), layers=[LAYER], logits=False)
    weights, length = trace.attention[LAYER], len(trace.tokens)
    size = regard.save_page(trace, file, title="SmolLM2", findings=["A sentence."]) / MB
    print(f"  file of {length} tokens: {size:.2f} MB, target 18 MB{verdict(size, 18)}", flush=True)
    with opened(chromium, file) as tab:
        tab.click("role=tab[name='Matrix']")
        tab.select_option("[data-choose=head]", str(HEADS[0]))
        tab.evaluate("settled()")
        print(f"  opened, and the first whole map exact, after {tab.evaluate('performance.now()') / 1e3:.2f} s")
        whole(tab)
        tile(tab, length)
        hover(tab, weights, float(tab.inner_text("[data-difference]")))
        zooms(tab)
        pan(tab)


def whole(tab: Any) -> None:
    """Every head's whole map: the coarse picture, then the exact one."""
    times, spent = [], []
    for head in HEADS[1:]:
        before = processor_seconds()
        times.append(tab.evaluate(HEAD, str(head)))
        spent.append(processor_seconds() - before)
        tab.evaluate("settled()")
    told("whole map of another head, coarse", [coarse for coarse, _ in times], 2 * FRAME)
    told("whole map of another head, exact", [exact for _, exact in times], 1500)
    if any(spent):
        print(f"    {statistics.median(spent):.2f} s of processor time, for two workers at once")


def tile(tab: Any, length: int) -> None:
    """One tile of 256 × 256 weights, asked of a worker that has the call, the answer's way back included."""
    spots = [{"head": n % 9, "query": length - 300 - 16 * n, "key": 512 + 16 * n} for n in range(20)]
    told("a tile of 256 × 256 weights", [tab.evaluate(TILE, spot) for spot in spots][2:], 16)


def hover(tab: Any, weights: Any, difference: float) -> None:
    """Cells under the mouse: how long until the weight stands there, and how far all weights are from the library's."""
    chance = random.Random(0)
    times, apart = [], 0.0
    for _ in range(100):
        y = chance.uniform(0.2, 0.98)
        took, query, key, weight = tab.evaluate(HOVER, [chance.uniform(0.15, 0.1 + y * 0.85), y])
        times.append(took)
        apart = max(apart, abs(weight - float(weights[HEADS[-1], query, key])))
    told("a weight on hover", times[2:], 100)
    for head in range(9):  # what a hover reads: the whole row of its query
        for query in range(head, weights.shape[1], weights.shape[1] // 12):
            row = torch.tensor(tab.evaluate(ROW, {"head": head, "query": query}))
            apart = max(apart, float((row - weights[head, query]).abs().max()))
    most = difference * 1.05 + 5e-7  # as stated, to two digits; six decimals are shown
    stated = f"stated {difference:.1e}{verdict(apart, most)}"
    print(f"  weights of 108 queries: {apart:.1e} from the library's at most, {stated}")


def zooms(tab: Any) -> None:
    """From the whole to single weights by steps of two, and back."""
    tab.evaluate("press('ArrowDown')")
    for what, key in (("in", "+"), ("out", "-")):
        times = []
        for _ in range(7):
            times.append(tab.evaluate("(key) => timed(() => press(key))", key))
            tab.evaluate("settled()")
        told(f"a step of zoom {what}, coarse", [coarse for coarse, _ in times], 2 * FRAME)
        told(f"a step of zoom {what}, exact", [exact for _, exact in times], 1500, all_of_them=True)


def pan(tab: Any) -> None:
    """Frames a second while the mouse drags the map across the text."""
    tab.evaluate("press('Home')")
    for _ in range(3):
        tab.evaluate("press('+')")
    tab.evaluate("settled()")
    box = tab.locator("canvas").bounding_box()
    x, y = box["x"] + 0.8 * box["width"], box["y"] + 0.6 * box["height"]
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.evaluate(FRAMES)
    for n in range(1, 121):
        tab.mouse.move(x - 4 * n, y - 3 * n)
    times = tab.evaluate("frames_at")
    tab.mouse.up()
    between = sorted(b - a for a, b in itertools.pairwise(times))
    rate = 1000 * len(between) / (times[-1] - times[0])
    late = 1000 / between[int(0.95 * len(between))]
    missed = "" if rate >= 30 else "  MISSED"
    print(f"  panning: {rate:.0f} frames a second, 95 of 100 at {late:.0f} or more, target 30{missed}")


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, or an end with what is missing."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("there is no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextmanager
def opened(chromium: Any, file: Path) -> Iterator[Any]:
    """The file in a tab of its own."""
    context = chromium.new_context(viewport={"width": 1100, "height": 900}, offline=True)
    context.add_init_script(WATCH)
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    tab.goto(file.as_uri())
    yield tab
    context.close()


def first_picture(chromium: Any, file: Path) -> float:
    """Seconds from opening a file to the weights of the word it opens at."""
    with opened(chromium, file) as tab:
        return float(tab.evaluate("opened()")) / 1e3


def processor_seconds() -> float:
    """Processor time that the processes begun from here have used so far, by Linux's count; 0 elsewhere."""
    parents, times = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        parents[int(folder.name)], times[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    total = 0
    for process, ticks in times.items():
        ancestor = parents[process]
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        total += ticks if ancestor == os.getpid() else 0
    return total / os.sysconf("SC_CLK_TCK")


def passage(tokenizer: Any, tokens: int) -> str:
    """So many tokens of this project's own documentation."""
    docs = Path(__file__).parents[1] / "docs"
    text = "The bank of a river. " + "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(docs.glob("*.md")))
    ids = tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    return str(tokenizer.decode(ids[:tokens]))


def told(what: str, times: list[float], target: float, all_of_them: bool = False) -> None:
    """One line: the median of some milliseconds, and the target."""
    took = statistics.median(times)
    each = f" [{', '.join(f'{time:.0f}' for time in times)}]" if all_of_them else f" ({least_and_most(times)})"
    worst = max(times) if all_of_them else took
    print(f"  {what}: {took:.1f} ms{each}, target {target:.0f} ms{verdict(worst, target)}", flush=True)


def least_and_most(times: list[float]) -> str:
    """The range of some times."""
    return f"{min(times):.2f} to {max(times):.2f}"


if __name__ == "__main__":
    main()
