"""Training under `watch(every=, log=)` stays the same to the bit, and its rows are the means of the maps."""

import copy
import io
import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.capture.watching.steps import STATISTICS
from regard.errors import RegardError
from tests.support.handwritten import NanoGPT

X = torch.linspace(-2, 2, 640).view(2, 10, 32).sin()


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.3, batch_first=True), 2)


def by_hand() -> nn.Module:
    return nn.Sequential(NanoGPT(), nn.Dropout(0.3), NanoGPT())


def train(model: nn.Module, steps: int = 7, passes: int = 1, run: Callable[[Tensor], Tensor] | None = None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(steps):
        for _ in range(passes):
            (run or model)(X).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            model.eval()(X)  # no step: it trains nothing
        model.train()


@pytest.mark.parametrize("make", [encoder, by_hand])
@pytest.mark.parametrize("passes", [1, 3])
def test_training_stays_the_same_and_passes_that_accumulate_are_one_step(make: Any, passes: int) -> None:
    results, logged = [], list[tuple[int, list[dict[str, Any]]]]()
    for watching in (False, True):
        torch.manual_seed(0)
        model = make()
        block = regard.watch(model, every=3, log=lambda *step: logged.append(step)) if watching else nullcontext()
        with block as seen:
            train(model, passes=passes)
        results.append([*model.parameters(), torch.rand(1)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert [step for step, _ in logged] == [0, 3, 6]
    assert all(len(rows) == 8 for _, rows in logged)
    assert len(seen) == 0  # no map is kept
    assert len(model._forward_hooks) == len(model._forward_pre_hooks) == 0


def means(weights: Tensor, head: int) -> dict[str, float]:
    """Compute a head's statistics in float64."""
    w = weights.double()[:, head]
    i = torch.arange(w.shape[-1])
    distance = (w * (i[:, None] - i).abs()).sum(-1)
    by_query = torch.special.entr(w).sum(-1), w.amax(-1), distance, w[..., 0]
    return {name: float(values.mean()) for name, values in zip(STATISTICS, by_query, strict=True)}


@pytest.mark.parametrize("make", [encoder, by_hand])
def test_rows_are_the_means_of_the_maps(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, file = make(), tmp_path / "attention.jsonl"
    with regard.watch(model, log=file), regard.record() as calls, torch.autocast("cpu", torch.bfloat16):
        train(model, 1)
    assert file.read_bytes().endswith(b"\n")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["step"], row["call"], row["path"], row["head"]) for row in rows] == [
        (0, 0, path, head) for path, _ in calls for head in range(4)
    ]
    for row in rows:
        right = means(calls[row["path"], 0].weights.dense(), row["head"])
        assert {name: row[name] for name in STATISTICS} == pytest.approx(right, abs=2e-3 if make is by_hand else 1e-5)
    with regard.watch(model, log=str(file)):
        train(model, 1)
    assert len(file.read_text().splitlines()) == 2 * len(rows)  # appended


def test_queries_without_keys_and_axes_without_heads() -> None:
    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(32, 32)

        def forward(self, x: Tensor) -> Tensor:
            mask = torch.ones(10, 6, dtype=torch.bool)
            mask[4:] = False
            fused = F.scaled_dot_product_attention(self.q(x)[:, None], x[:, None, :6], x[:, None, :6], mask)
            return fused.nan_to_num(0)[:, 0] + (self.q(x) @ x.mT).softmax(-1) @ x  # (B, L, S): no heads

    model, logged = Cross(), list[list[dict[str, Any]]]()
    with regard.watch(model, log=lambda _, rows: logged.append(rows)):
        train(model, 1)
    with regard.watch(model) as seen, torch.no_grad():
        model(X)
    fused, own = logged[0]
    assert (fused["call"], own["call"], fused["head"], own["head"], fused["distance"]) == (0, 1, None, None, None)
    torch.manual_seed(0)
    assert 0 < fused["first_token"] < 1
    assert fused["entropy"] > 0.5 * math.log(6)  # of the four queries that attend to something
    assert len(seen) == 2


def test_scalars_go_to_a_writer_and_steps_need_no_optimizer() -> None:
    class Writer:
        def __init__(self) -> None:
            self.scalars: dict[tuple[str, int], float] = {}

        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            self.scalars[tag, global_step] = scalar_value

    model, writer = encoder(), Writer()
    with regard.watch(model, every=2, log=writer):
        for _ in range(5):
            model(X).square().mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.01 * parameter.grad
    assert len(writer.scalars) == 3 * 2 * 4 * 4
    assert ("layers.1.self_attn/entropy/3", 4) in writer.scalars


def test_without_a_log_the_last_steps_maps_are_kept() -> None:
    model = by_hand()
    with regard.watch(model, every=3, keep=1) as seen:
        train(model)
    assert list(seen) == [("0", 2), ("2", 2)]
    assert seen["0"].weights.shape == (2, 4, 10, 10)
    assert "0, 2  by hand" in repr(seen)
    assert "Only the last 1 calls of each path are kept." in repr(seen)


def test_a_long_block_does_not_grow() -> None:
    model = nn.Sequential(NanoGPT(), nn.Softmax(-1))
    with regard.watch(model, keep=2) as seen:
        for _ in range(20):
            model(X)
    assert list(seen) == [("0", 18), ("0", 19)]
    assert [softmax.path for softmax in seen.passed_over] == ["Sequential"]


def test_compiled_modules_run_compiled_between_the_steps() -> None:
    graphs = []

    def backend(graph: Any, _: Any) -> Any:
        def run(*args: Any) -> Any:
            graphs.append(None)
            return graph(*args)

        return run

    model, logged = by_hand().train(), []
    compiled: Any = torch.compile(model, backend=backend)
    with regard.watch(compiled, every=3, log=lambda step, _: logged.append(step)):
        train(model, run=compiled)
    assert logged == [0, 3, 6]
    assert len(graphs) == 4  # the steps 1, 2, 4 and 5


def test_modules_that_run_in_compiled_code_train_and_are_warned_about_at_the_first_update() -> None:
    model, logged, graphs = by_hand(), list[int](), []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    model.compile(backend=backend)
    with regard.watch(model, every=2, log=lambda step, _: logged.append(step)):
        with pytest.warns(UserWarning, match=r"no pass in training mode.* Pass the compiled module") as warned:
            train(model)
        assert len(warned) == 1
    assert graphs
    assert logged == []


def test_frozen_lazy_and_silent_modules_are_logged() -> None:
    class Silent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.then = nn.LazyLinear(32), encoder()

        def forward(self, x: Tensor) -> None:
            self.output = self.then(self.first(x))

    silent, frozen, head, logged = Silent(), encoder().requires_grad_(False), nn.Linear(32, 1), list[int]()
    with regard.watch(silent, every=1, log=lambda step, _: logged.append(step)):
        train(silent, 3, run=lambda x: silent(x) or silent.output)
    assert logged == [0, 1, 2]
    logged.clear()
    with regard.watch(frozen, every=1, log=lambda step, _: logged.append(step)):
        train(head, 3, run=lambda x: head(frozen(x)))
    assert logged == [0, 1, 2]


def test_copies_and_files_of_the_module_are_not_counted() -> None:
    model, logged = encoder(), []
    with regard.watch(model, every=1, log=lambda step, _: logged.append(step)):
        train(model, 2)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            train(other, 2)
        model.half()
    assert logged == [0, 1]


def test_failing_passes_and_loops_that_train_nothing() -> None:
    model, logged = encoder(), []
    with regard.watch(model, every=1, log=lambda step, _: logged.append(step)):
        with pytest.raises(AssertionError):
            model(torch.randn(2, 10, 31))
        assert torch.overrides._get_current_function_mode_stack() == []
        train(model, 1)
    assert logged == [0]  # the first pass that didn't fail
    with pytest.warns(UserWarning, match="made no pass in training mode"), regard.watch(model, every=1):
        model.eval()(X)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_log_that_fails_later_does_not_end_training(tmp_path: Path) -> None:
    model, log = by_hand(), tmp_path / "log.jsonl"
    with regard.watch(model, every=3, log=log):
        train(model, steps=1)
        log.rename(tmp_path / "moved")
        log.mkdir()
        with pytest.warns(UserWarning, match="step 3 wasn't logged"):
            train(model, steps=3)
    assert (tmp_path / "moved").read_text().count("\n") == 8


def test_wrong_arguments_and_modules_without_attention_are_refused_at_once(tmp_path: Path) -> None:
    model = encoder()
    cases: list[tuple[nn.Module | None, dict[str, Any], str]] = [
        (model, {"every": 0}, "keep and every need to be whole numbers, 1 or more"),
        (model, {"keep": 0}, "keep and every need to be whole numbers, 1 or more"),
        (None, {"every": 2}, "every needs a module, and no interventions"),
        (model, {"every": 2, "interventions": [regard.ablate("layers.0", head=1)]}, "and no interventions"),
        (model, {"log": 3}, "log is a int, needs a path, a SummaryWriter or a function"),
        (model, {"log": tmp_path / "no" / "folder.jsonl"}, "log can't be written: .*No such file"),
    ]
    for module, options, error in cases:
        with pytest.raises(RegardError, match=error), regard.watch(module, **options):
            raise AssertionError
    classifier, passes = nn.Sequential(nn.Linear(32, 4), nn.Softmax(-1)), []
    classifier.register_forward_hook(lambda *_: passes.append(None))
    with pytest.raises(RegardError, match=r"no attention .*\n.*passed over"), regard.watch(classifier, log=print):
        train(classifier)
    assert len(passes) == 1
