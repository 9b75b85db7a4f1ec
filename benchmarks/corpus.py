"""Speed and memory of `regard.corpus`: python -m benchmarks.corpus speed|find|workers|memory [FILE...]

speed: tokens a second of one core, MiniLM's last layer, vectors of all tokens on disk, tokenising and writing on every
side, texts of mixed length (mean about 57 tokens, at most 256). All read the same texts in turn, and others in the next
round: what is compiled for a shape that was met before would be flattered by the same ones. Plain torch reads batches
of one length. Measured if it is installed: sentence-transformers (output_value="token_embeddings").
find: one word, and a sentence, in a made-up store of a million rows. workers: two processes against one. memory: the
largest process at a growing number of tokens.

FILE...: text files that the texts are cut from, by default the book of REGARD_SHARED.
"""

import argparse
import gc
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import machine
from regard.corpus.settings import Settings
from regard.errors import RegardError

SHARED = Path(os.environ.get("REGARD_SHARED", Path(__file__).parents[2] / "shared"))
BOOK = SHARED / "data" / "moby_dick" / "moby_dick.txt"
Way = Callable[[list[str], Path], int]  # reads texts, writes their vectors into a folder, returns how many tokens


def texts_of(files: list[str], tokens: int) -> list[str]:
    import regard

    tokenizer = regard.load().tokenizer
    raw = " ".join(" ".join(Path(file).read_text(encoding="utf-8", errors="replace").split()) for file in files)
    found = tokenizer(raw, return_offsets_mapping=True, add_special_tokens=False, truncation=False, verbose=False)
    offsets, draws = found["offset_mapping"], np.random.default_rng(0)
    texts, at, count = [], 0, 0
    while count < tokens:
        length = int(np.clip(draws.lognormal(3.75, 0.75), 3, 254))
        at = at if at + length < len(offsets) else int(draws.integers(0, 200))
        texts.append(raw[offsets[at][0] : offsets[at + length - 1][1]])
        at, count = at + length, count + length + 2
    return texts


def speed(files: list[str], tokens: int, rounds: int) -> None:
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    texts = texts_of(files, tokens * (rounds + 1))
    slices = [texts[n :: rounds + 1] for n in range(rounds + 1)]
    makers: dict[str, Callable[[], Way]] = {
        "regard, vectors": partial(_ours, Settings(unit="tokens", statistics=False)),
        "regard, vectors and attention of all layers": partial(_ours, Settings(unit="tokens")),
        "plain torch, batches of one length": _plain_torch,
        "sentence-transformers": _sentence_transformers,
    }
    ways: dict[str, Way] = {}
    for name, make in makers.items():
        try:
            ways[name] = make()
            with tempfile.TemporaryDirectory() as folder:
                ways[name](slices[0], Path(folder))
        except (ImportError, RegardError) as error:
            print(f"{name}: not measured ({error})")
            ways.pop(name, None)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[float]] = {
        name: [] for name in ways
    }  # processor time, which others on the machine share less
    count = 0
    for each in slices[1:]:
        for name, way in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                start, used = time.perf_counter(), time.process_time()
                count = way(each, Path(folder))
                rates[name].append(count / (time.perf_counter() - start))
                costs[name].append(count / (time.process_time() - used))
    print(f"{len(slices[1])} texts, {count:,} tokens, one core, medians of {rounds} rounds; {machine()}")
    for name, own in rates.items():
        ratio, cost = (
            statistics.median(a / b for a, b in zip(each[name], each["regard, vectors"], strict=True))
            for each in (rates, costs)
        )
        every = ", ".join(f"{rate:,.0f}" for rate in own)
        told = f"{ratio:.2f} of ours, {cost:.2f} by processor time ({every})"
        print(f"{name:53} {statistics.median(own):8,.0f} tokens/s, {told}")


def _ours(settings: Settings) -> Way:
    import regard
    from regard.corpus.reading.document import Document
    from regard.corpus.writing.build_shard import DocumentReader, build_shard
    from regard.corpus.writing.cut_windows import window_size
    from regard.corpus.writing.store_folder import write_shard

    model = regard.load()
    reading = DocumentReader(model, [5], window_size(model, settings), settings)
    gc.freeze()  # as a worker does

    def run(texts: list[str], folder: Path) -> int:
        documents = [Document(f"text {n}", text, 0, "benchmark", n, {}) for n, text in enumerate(texts)]
        tables = build_shard(reading, documents)
        write_shard(folder, "one", tables)
        return tables.tokens

    return run


def _plain_torch() -> Way:
    """The transformers model with PyTorch's attention, on the batches that ours reads, its vectors written out."""
    import regard
    from regard.models.states import window_batches_by_length

    model = regard.load()
    bare, tokenizer = model.model, model.tokenizer

    def run(texts: list[str], folder: Path) -> int:
        ids = tokenizer(texts, truncation=False, padding=False)["input_ids"]
        found = [np.zeros(0)] * len(ids)
        for batch in window_batches_by_length([len(each) for each in ids]):
            with torch.no_grad():
                states = bare(input_ids=torch.tensor([ids[n] for n in batch])).last_hidden_state
            for n, rows in zip(batch, states.to(torch.float16).numpy(), strict=True):
                found[n] = rows
        vectors = np.concatenate(found)
        np.save(folder / "vectors.npy", vectors)
        return len(vectors)

    return run


def _sentence_transformers() -> Way:
    from sentence_transformers import SentenceTransformer

    from regard.model_files.folder import default_folder

    model = SentenceTransformer(str(default_folder()), device="cpu")

    def run(given: list[str], folder: Path) -> int:
        found = model.encode(given, output_value="token_embeddings", convert_to_numpy=False, show_progress_bar=False)
        vectors = np.concatenate([each.numpy() for each in found]).astype(np.float16)
        np.save(folder / "vectors.npy", vectors)
        return len(vectors)

    return run


def find(rows: int) -> None:
    """A store of so many rows of made-up words, 1,000 of them "whale", in shards of 50,000."""
    import pyarrow as pa

    from regard.corpus import schema
    from regard.corpus.schema import Manifest, ModelSummary, ShardSummary
    from regard.corpus.shard_reader import sha256_of_shard_file
    from regard.corpus.store import Store
    from regard.corpus.store_tables import describe_store_environment, digest_model
    from regard.corpus.writing.store_folder import ShardTables, sort_rows, write_shard
    from regard.models.load import load

    model, draws, size = load(), np.random.default_rng(0), 50_000
    with tempfile.TemporaryDirectory() as folder:
        store, shards = Path(folder), []
        for number in range(rows // size):
            words = [f"word{n}" for n in draws.zipf(1.2, size).clip(max=50_000)]
            words[:: size // 50] = ["whale"] * len(words[:: size // 50])
            text = " ".join(words)
            ends = np.cumsum([len(word) + 1 for word in words]) - 1
            zeros = np.zeros(size, np.int32)
            table = pa.table(
                {"word": words, "form": words, "lemma": [None] * size, "document": [f"d{number}"] * size, "part": zeros,
                 "start": ends - [len(word) for word in words], "end": ends, "window": zeros, "position": zeros,
                 "tokens": zeros + 1}, schema=schema.rows(6, statistics=False, sources=False)
            )  # fmt: skip
            texts = pa.table(
                {"document": [f"d{number}"], "start": [0], "end": [len(text)], "text": [text], "source": ["made"],
                 "line": [None], "metadata": [[]]}, schema=schema.texts()
            )  # fmt: skip
            vectors = draws.standard_normal((size, 1, 384), np.float32).astype(np.float16)
            table, vectors = sort_rows(table, vectors)
            tables = ShardTables(texts, table, vectors, schema.spans().empty_table())
            folder = write_shard(store / "shards", f"{number:024d}", tables)
            shards.append(ShardSummary(folder.name, 1, size, size, sha256_of_shard_file(folder / "index.json")))
        summary = ModelSummary(model.name, "", digest_model(model), 6, 12, 384)
        settings = Settings(statistics=False).to_json()
        Manifest(summary, settings, describe_store_environment(), ["made"], [5], shards, {}, True).write(store)
        start = time.perf_counter()
        opened = Store(store)
        opened.sql("SELECT count(*) FROM shards")
        print(f"{rows:,} rows in {len(shards)} shards; {machine()}")
        print(f"opening, with the first query: {time.perf_counter() - start:.2f} s")
        opened.find("whale", like="The whale dived.")  # loads the model
        asked = {
            "find, one word": lambda: opened.find("whale"),
            "find, one word, like a sentence": lambda: opened.find("whale", like="The whale dived."),
            "find like a sentence, everywhere": lambda: opened.find(
                "whale", like="The whale dived.", everywhere=True, top=20
            ),
        }
        for name, ask in asked.items():
            took = []
            for _ in range(7):
                start = time.perf_counter()
                ask()
                took.append(time.perf_counter() - start)
            print(f"{name:40} {1e3 * statistics.median(took[1:]):7.0f} ms")


def workers(files: list[str], tokens: int) -> None:
    texts = texts_of(files, tokens)
    with tempfile.TemporaryDirectory() as folder:
        _write(texts, Path(folder) / "texts.jsonl")
        rates = {}
        for count in (1, 2):
            line = _embed(Path(folder), f"store{count}", "--workers", str(count))
            rates[count] = line["tokens_per_second"]
            print(
                f"{count} workers: {rates[count]:,.0f} tokens/s with starting and loading ({line['seconds']:.0f} s)",
                flush=True,
            )
        print(f"two workers: {rates[2] / rates[1]:.2f} of one; {machine()}")


def memory(files: list[str], tokens: int, model: str | None) -> None:
    options = [] if model is None else ["--model", model]
    print(machine())
    for count in (10_000, 100_000, tokens):
        with tempfile.TemporaryDirectory() as folder:
            _write(texts_of(files, count), Path(folder) / "texts.jsonl")
            _embed(Path(folder), "store", "--workers", "1", *options)
            most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{count:>12,} tokens: {most:,.0f} MiB in the largest process", flush=True)


def _write(texts: list[str], file: Path) -> None:
    import json

    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def _embed(folder: Path, store: str, *options: str) -> dict[str, float]:
    import json

    command = [sys.executable, "-m", "regard", "embed", str(folder / "texts.jsonl"), "--out", str(folder / store)]
    done = subprocess.run([*command, "--json", "-", *options], check=True, capture_output=True, text=True)
    return json.loads(re.search(r"\{.*\}", done.stdout, re.S)[0])  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "find", "workers", "memory"))
    parser.add_argument("files", nargs="*", default=[str(BOOK)])
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--model", help="of memory: a small one reads many tokens soon")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "find":
        find(given.rows)
    elif given.what == "speed":
        speed(given.files, given.tokens, given.rounds)
    elif given.what == "memory":
        memory(given.files, given.tokens, given.model)
    else:
        workers(given.files, given.tokens)


if __name__ == "__main__":
    main()
