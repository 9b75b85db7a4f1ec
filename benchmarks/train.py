"""What training comes to: a character model beside a plain PyTorch one, and a translator in 30 minutes.

python -m benchmarks.train characters TEXT          nanoGPT's set-up for a CPU: loss, and time a step beside plain torch
python -m benchmarks.train translate PAIRS [--minutes 30]     French to English: sacreBLEU on 2,000 held-out pairs

TEXT is tiny Shakespeare, PAIRS the English-French file of Tatoeba (tab-separated, or the .zip it comes in).
"""

import argparse
import json
import statistics
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.measure import machine
from regard.train.loop import optimiser_of, train, validate
from regard.train.run import RunOptions, prepare_pair_run, prepare_text_run, run_training
from regard.train.run_folder import TrainingState
from regard.train.settings import Settings

WIDTH, HEADS, LAYERS, BLOCK, BATCH = 128, 4, 4, 64, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("characters", "translate"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--out", type=Path, help="keep the run here (translate)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting (translate)")
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "characters":
            characters(given.file, Path(folder) / "run")
        else:
            changes = {name: json.loads(value) for name, _, value in (each.partition("=") for each in given.set)}
            translate(given.file, given.out or Path(folder) / "run", given.minutes, changes)


class Plain(nn.Module):
    """The same model in plain PyTorch, for its speed: pre-norm, no biases, GELU, tied head, fused q, k, v."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.ModuleList(PlainLayer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH, bias=False), nn.Linear(WIDTH, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class PlainLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.behind(x))))


def characters(file: Path, run: Path) -> None:
    """Train ours to the end; then time a step of ours and of the plain model, turn about."""
    settings = Settings(evaluate_every=0, save_every=0, sample_every=0, watch_every=0)
    prepared = prepare_text_run([file], run, settings)
    print(f"{prepared.parameters:,} parameters; {prepared.notes[0]}")
    began, told = time.perf_counter(), []
    run_training(prepared, on_log=told.append)
    seconds = time.perf_counter() - began
    print(f"2000 steps in {seconds:.0f} s, {1000 * statistics.median(r.seconds for r in told):.1f} ms a step (median)")
    loss = validate(prepared.model, prepared.data.validation(), settings)
    print(f"loss on all that was held out {loss:.4f} (aim 1.88)")

    plain: Any = Plain(prepared.model.config.vocabulary)
    other = optimiser_of(plain, settings)
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for number in range(40):
        for name in ("ours", "plain") if number % 2 else ("plain", "ours"):
            started = time.perf_counter()
            for step in range(5):
                if name == "ours":
                    going = replace(settings, steps=1, warmup=1)
                    train(prepared.model, _Again(prepared.data), prepared.optimiser, going, TrainingState(),
                          save=lambda _: None, on_log=lambda _: None)  # fmt: skip
                else:
                    batch, _ = prepared.data.batch((0, step))
                    other.zero_grad(set_to_none=True)
                    logits = plain(batch.ids)
                    F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten()).backward()
                    nn.utils.clip_grad_norm_(plain.parameters(), settings.clip)
                    other.step()
            times[name].append((time.perf_counter() - started) / 5)
    ours, theirs = (1000 * statistics.median(each) for each in times.values())
    print(f"a step: ours {ours:.1f} ms, plain PyTorch {theirs:.1f} ms, ratio {ours / theirs:.2f} (aim: at most 1)")


class _Again:
    """Data that validates on nothing, for steps that are only timed."""

    def __init__(self, data: Any) -> None:
        self.batch = data.batch
        self.first = data.batch((0, 0))[0].rows_of_process(0, BATCH)

    def validation(self, most: int | None = None) -> Any:
        return [self.first]


def translate(file: Path, run: Path, minutes: float, changes: dict[str, Any]) -> None:
    """Train French to English for some minutes, and measure."""
    import sacrebleu

    pairs = Path(tempfile.mkdtemp()) / "pairs.tsv"
    pairs.write_text(turned(file), encoding="utf-8")
    settings = Settings.for_pairs(**{"sample_every": 0, "watch_every": 0, "evaluate_every": 500, **changes})
    if "steps" not in changes:
        with tempfile.TemporaryDirectory() as folder:
            settings = replace(settings, steps=steps_in(pairs, Path(folder) / "run", settings, minutes))
    began = time.perf_counter()
    prepared = prepare_pair_run(pairs, run, settings, RunOptions(resume=True))
    print(f"{prepared.parameters:,} parameters; {'; '.join(prepared.notes)}", flush=True)

    def tell(report: Any) -> None:
        if report.validation is not None:
            took = (time.perf_counter() - began) / 60
            print(f"step {report.step}: held out {report.validation:.3f}, {took:.1f} min", flush=True)

    done = run_training(prepared, on_log=tell)
    took = (time.perf_counter() - began) / 60
    print(f"{done.step} steps in {took:.1f} minutes" + (" (over the time asked for)" if took > minutes else ""))
    found = translations(prepared, [pair.source for pair in prepared.held])
    score = sacrebleu.corpus_bleu(found, [[pair.target for pair in prepared.held]])
    print(f"sacreBLEU on {len(found):,} held-out pairs, one reference each: {score.score:.1f} (aim 20)\n{score}")
    for pair, text in list(zip(prepared.held, found, strict=True))[:12]:
        print(f"  {pair.source}\n    → {text}\n    ({pair.target})")


def steps_in(pairs: Path, run: Path, settings: Settings, minutes: float) -> int:
    """How many steps fit into 95 % of the minutes, going by 40 of them: the schedule needs to know its end."""
    prepared = prepare_pair_run(pairs, run, replace(settings, steps=40, evaluate_every=0, save_every=0))
    told: list[Any] = []
    began = time.perf_counter()
    run_training(prepared, on_log=told.append)
    print(f"40 steps took {time.perf_counter() - began:.1f} s with validation", flush=True)
    return max(100, int(0.95 * minutes * 60 / statistics.mean(each.seconds for each in told[5:-1])))


def turned(file: Path) -> str:
    """The file's pairs as French<tab>English lines."""
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as packed:
            name = next(each for each in packed.namelist() if each.endswith(".txt") and "about" not in each)
            content = packed.read(name).decode("utf-8")
    else:
        content = file.read_text(encoding="utf-8")
    columns = [line.split("\t") for line in content.splitlines() if line.strip()]
    return "".join(f"{french}\t{english}\n" for english, french, *_ in columns)


def translations(prepared: Any, sources: list[str]) -> list[str]:
    """What the model makes of texts, the likeliest token each time, in batches of like lengths."""
    from regard.nn.decoding import Sampling, translate
    from regard.train.data import padded

    end = prepared.tokenizer.eos_token_id
    rows = [[*row, end] for row in prepared.tokenizer(sources, add_special_tokens=False)["input_ids"]]
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    found: dict[int, str] = {}
    prepared.model.eval()
    for first in range(0, len(order), 64):
        chosen = order[first : first + 64]
        ids, mask = padded([rows[n] for n in chosen], prepared.tokenizer.pad_token_id)
        with torch.no_grad():
            written = translate(
                prepared.model, ids, mask=mask, max_new_tokens=2 * ids.shape[1] + 10, end=end,
                choose=Sampling(do_sample=False).chooser(),
            )  # fmt: skip
        for n, new in zip(chosen, written, strict=True):
            found[n] = prepared.tokenizer.decode(new, skip_special_tokens=True).strip()
    return [found[n] for n in range(len(rows))]


if __name__ == "__main__":
    main()
