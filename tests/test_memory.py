"""What will not fit is refused before it is begun, by shapes alone."""

import os
from pathlib import Path

import pytest
import torch
import transformers

import regard
from regard import memory
from regard.capture.options import CaptureOptions
from regard.models.runner import Sizes

CPU = torch.device("cpu")
GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch):
    """A machine whose memory the test writes down: {file: text}."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUP", tmp_path / "group")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")

    return write


def test_sizes_are_spelled_for_people() -> None:
    given = [0, 900, 1024, 1536, 200 * 1024, 3 * GIB, 3_435_973_837, 5 << 50]
    told = ["0 bytes", "900 bytes", "1.0 KiB", "1.5 KiB", "200 KiB", "3.0 GiB", "3.2 GiB", "5.0 PiB"]
    assert [memory.format_bytes(each) for each in given] == told


def test_the_machine_says_what_it_has(machine) -> None:
    machine({"meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    7000 kB\n"})
    assert memory.available(CPU) == 7000 * 1024
    assert memory.available(torch.device("meta")) is None


def test_control_groups_leave_less(machine) -> None:
    machine(
        {
            "meminfo": f"MemAvailable: {9 * GIB // 1024} kB\n",
            "group": "0::/outer/inner\n",
            "groups/outer/memory.max": f"{5 * GIB}\n",
            "groups/outer/memory.current": f"{3 * GIB}\n",
            "groups/outer/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            "groups/outer/inner/memory.max": "max\n",
            "groups/outer/inner/memory.current": "17\n",
        }
    )
    assert memory.available(CPU) == 3 * GIB  # 5 - 3, and 1 of files that are given back


def test_what_does_not_fit_is_refused(machine) -> None:
    machine({"meminfo": f"MemAvailable: {2 * GIB // 1024} kB\n"})
    memory.require_memory(2 * GIB, CPU, "it", "take less")
    says = r"^it needs 3\.0 GiB of memory, only 2\.0 GiB are free: take less$"
    with pytest.raises(regard.RegardError, match=says):
        memory.require_memory(3 * GIB, CPU, "it", "take less")
    machine({"meminfo": "MemAvailable: 0 kB\n"})
    memory.require_memory(memory.SMALL - 1, CPU, "it", "take less")  # nobody asks about so little


def test_a_dense_matrix_that_cannot_exist() -> None:
    length = 1 << 20
    rows = torch.zeros(1, 1, length, 2)
    weights = regard.attend(rows[:, :, :5], rows, rows, offset=0).weights
    assert weights[0, 0, 3, :7].shape == (7,)
    weights = regard.AttentionMap(rows, rows, weights.rule, offset=0)
    with pytest.raises(regard.RegardError, match=r"1 × 1 × 1048576 × 1048576 weights needs 4\.0 TiB of memory"):
        weights.dense()
    with pytest.raises(regard.RegardError, match=r"needs 12\.0 TiB of memory"):
        weights.dense(differentiable=True)
    assert float(weights[0, 0, 77, 78:80].sum()) == pytest.approx(2 / length)


def test_a_trace_that_will_not_fit_is_never_begun(minilm, monkeypatch) -> None:
    begun = []
    monkeypatch.setattr(minilm._session, "run", lambda *_: begun.append(1))
    monkeypatch.setattr(memory, "available", lambda _device: 70 << 20)
    with pytest.raises(regard.RegardError) as caught:
        minilm.trace("the bank by the river " * 900, window=500)
    assert begun == []
    assert "traces of " in str(caught.value)
    assert "by all-MiniLM-L6-v2 needs " in str(caught.value)
    assert "70.0 MiB are free: trace fewer layers (layers=), without logits" in str(caught.value)


def test_what_is_foreseen_is_what_is_held() -> None:
    """The estimate counts the very tensors: within a tenth of what a trace holds, for each choice of what is kept."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=997, hidden_size=96, intermediate_size=257, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=512,
    )  # fmt: skip
    opened = regard.load(transformers.LlamaForCausalLM(config))
    for layers, logits in ((None, True), (None, False), ([1, 4], True), ([3], False)):
        trace = opened.trace(ids=[7] * 311, layers=layers, logits=logits)
        keep = CaptureOptions(None if layers is None else frozenset(layers), logits)
        held = _held(trace)
        assert held <= Sizes.of(opened.model).trace_bytes(311, keep) <= 1.45 * held


def _held(trace) -> int:
    """Bytes of the storages that a trace holds on to, weights of the model aside."""
    names = ("token_embeddings", "position_embeddings", "segment", "input", "last_hidden_state", "logits")
    parts = [getattr(trace, name) for name in names]
    tensors = [part for part in parts if part is not None]
    tensors += [trace.hidden_states[n] for n in getattr(trace.hidden_states, "kept", range(len(trace.hidden_states)))]
    for n in getattr(trace.attention, "kept", range(len(trace.attention))):
        weights, block = trace.attention[n], trace.attention_outputs[n]
        tensors += [weights.query, weights.key, trace.values[n], block.residual, block.projected]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="a system that says what a process has")
def test_what_was_freed_goes_back_to_the_system() -> None:
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    blocks = [b"x" * 100_000 for _ in range(2000)]  # below the size that has pages of its own
    kept = blocks[::100]  # live ones in between
    full = held()
    del blocks
    memory.give_memory_back()
    assert full - held() > 100_000_000
    assert len(kept) == 20


def test_what_a_block_may_take_is_the_most_whatever_is_free(machine) -> None:
    machine({"meminfo": "MemAvailable: 8388608 kB\n"})
    with memory.limit_memory_to(2 * GIB):
        memory.require_memory(2 * GIB, CPU, "it", "take less")
        with pytest.raises(regard.RegardError, match=r"^it needs 3\.0 GiB of memory, the limit is 2\.0 GiB: take"):
            memory.require_memory(3 * GIB, CPU, "it", "take less")
    memory.require_memory(3 * GIB, CPU, "it", "take less")


def test_a_device_is_tried_out() -> None:
    assert memory.device_to_load_on("cpu") == memory.device_to_load_on(torch.device("cpu")) == torch.device("cpu")
    assert memory.device_to_load_on(None).type in ("cpu", "cuda")
    for name in ("abacus", "meta"):
        with pytest.raises(regard.RegardError, match=f"device '{name}' cannot be used here"):
            memory.device_to_load_on(name)


def test_the_widest_layer_of_gpt_2_counts() -> None:
    """Its feed-forward layers are transformers' Conv1D, not nn.Linear."""
    import transformers

    config = transformers.GPT2Config(n_embd=24, n_layer=1, n_head=3, vocab_size=50)
    assert Sizes.of(transformers.GPT2LMHeadModel(config)).inner == 4 * 24
