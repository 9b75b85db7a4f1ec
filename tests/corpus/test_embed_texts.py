"""What a store holds, and shards built in processes: the same bytes, however many, whoever is killed, however often."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

import regard
from regard.attention.kernels import matmul
from regard.corpus.embed_texts import EmbedProgress, EmbedReport, embed
from regard.corpus.reading.document import Columns
from regard.corpus.schema import NAME, Manifest, read_manifest
from regard.corpus.settings import Settings, Where
from regard.corpus.store import Store
from regard.errors import RegardError
from tests.support import make_tiny
from tests.support.corpora import leftovers, read_rows, store_digest, write_texts
from tests.support.stores import change_manifest

SMALL = Settings(shard=700)
FLAGS = ["--shard", "2000"]


@pytest.fixture
def forty_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 40)
    return "texts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, minilm: Any) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny(made, minilm)
    return made


def started(*arguments: str) -> "subprocess.Popen[str]":
    """The command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "regard", "embed", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """The processes that a process started, and that run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if entry.name.isdigit() and int(parent) == pid and state != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run: not Python's tracker of resources."""
    return [each for each in children(pid) if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def until(what: Any, seconds: float = 60) -> Any:
    """Wait for what gives something true."""
    end = time.monotonic() + seconds
    while not (given := what()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return given


def shards(store: str) -> list[Path]:
    """The finished shards of a store."""
    folder = Path(store, "shards")
    return [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []


@pytest.fixture
def group() -> Iterator[list["subprocess.Popen[str]"]]:
    """Runs whose process groups are ended with the test."""
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for each in begun:
        end(each)


def end(run: "subprocess.Popen[str]") -> None:
    """Kill a run and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.communicate()


@pytest.mark.long  # 20 s: processes, each with its own start
def test_the_same_bytes_with_any_number_of_processes(forty_texts: str, folder: Path) -> None:
    embed(forty_texts, "one", model=folder, settings=SMALL, workers=1)
    embed(forty_texts, "two", model=folder, settings=SMALL, workers=2)
    assert len(shards("one")) > 10
    assert store_digest(Path("one")) == store_digest(Path("two"))
    from unittest import mock

    with mock.patch("regard.corpus.embed_texts.build_and_write_shard", side_effect=AssertionError):
        assert embed(forty_texts, "one", model=folder, settings=SMALL, workers=2).built == 0


@pytest.mark.long
def test_the_same_bytes_of_a_loaded_model(forty_texts: str, minilm: Any) -> None:
    embed(forty_texts, "processes", settings=Settings(shard=5000), workers=2)
    embed(forty_texts, "here", settings=Settings(shard=5000), model=minilm)
    assert store_digest(Path("processes")) == store_digest(Path("here"))


@pytest.mark.long
def test_a_script_needs_no_guard(forty_texts: str, folder: Path, tmp_path: Path) -> None:
    """Workers do not run the script that started them again."""
    script = f"""
import regard.corpus
print("once")
report = regard.corpus.embed("texts", "store", model={str(folder)!r}, workers=2)
print(report.counts["documents"])
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n40\n", "")
    assert read_manifest(Path("store")).complete


@pytest.mark.long
def test_an_interrupted_run_does_not_wait_for_its_workers(forty_texts: str, folder: Path) -> None:
    def stop(_: EmbedProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:  # whose traceback keeps the run's frames, and what they wait for
        embed(forty_texts, "store", model=folder, settings=SMALL, workers=2, progress=stop)
    assert not workers_of(os.getpid())
    assert held.value.__traceback__ is not None
    assert not leftovers(Path("store"))
    embed(forty_texts, "store", model=folder, settings=SMALL, workers=1)
    embed(forty_texts, "whole", model=folder, settings=SMALL, workers=1)
    assert store_digest(Path("store")) == store_digest(Path("whole"))


@pytest.mark.parametrize(
    "kills", [pytest.param(3, marks=pytest.mark.long), pytest.param(10, marks=pytest.mark.nightly)]
)
def test_killed_at_random_moments(forty_texts: str, group: list["subprocess.Popen[str]"], kills: int) -> None:
    """All of the run's processes at once, with SIGKILL; then the same bytes, nothing twice, nothing lost or left."""
    for n in range(2):
        write_texts(Path(forty_texts, str(n)), 80, seed=n + 1, longest=120)
    begin = time.monotonic()
    whole = started(forty_texts, "--out", "whole", *FLAGS, "--workers", "2")
    group.append(whole)
    _, said = whole.communicate()
    taken = time.monotonic() - begin
    assert whole.returncode == 0, said
    draw, counts = random.Random(7), []
    for kill in range(kills):
        run = started(forty_texts, "--out", "store", *FLAGS, "--workers", "2")
        group.append(run)
        # every other one while shards are written, the others anywhere, also before there is a store
        if kill % 2:
            before = len(shards("store"))
            until(lambda before=before, run=run: len(shards("store")) > before or run.poll() is not None)
            time.sleep(draw.uniform(0, taken / 20))
        else:
            time.sleep(draw.uniform(0, taken / 2))
        end(run)
        counts.append(len(shards("store")))
    assert counts == sorted(counts)
    assert len(set(counts)) > kills * 3 // 10
    last = started(forty_texts, "--out", "store", *FLAGS, "--workers", "1")
    group.append(last)
    _, said = last.communicate()
    assert last.returncode == 0, said
    assert not leftovers(Path("store"))
    assert store_digest(Path("store")) == store_digest(Path("whole"))
    rows, _ = read_rows(Path("store"))
    places = [(row["document"], row["start"]) for row in rows]
    assert len(set(places)) == len(places) == read_manifest(Path("whole")).counts["rows"]


@pytest.mark.long
def test_workers_end_with_their_parent(forty_texts: str, group: list["subprocess.Popen[str]"]) -> None:
    run = started(forty_texts, "--out", "store", "--shard", "500", "--workers", "2")
    group.append(run)
    until(lambda: len(workers_of(run.pid)) == 2 and shards("store"))
    own = workers_of(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in own), seconds=10)


@pytest.mark.long
def test_a_killed_worker_is_told_and_the_run_goes_on(forty_texts: str, group: list["subprocess.Popen[str]"]) -> None:
    for n in range(3):
        write_texts(Path(forty_texts, str(n)), 150, seed=n + 1, longest=120)
    run = started(forty_texts, "--out", "store", *FLAGS, "--workers", "2")
    group.append(run)
    until(lambda: shards("store"))
    os.kill(workers_of(run.pid)[0], signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (2, "")
    lines = [line for line in err.splitlines() if " tokens/s" not in line]  # of progress
    assert len(lines) == 1, err
    assert "a worker was ended before its shard was written" in lines[0]
    assert not leftovers(Path("store"))
    there = len(shards("store"))
    report = embed(forty_texts, "store", settings=Settings(shard=2000), workers=1)
    assert report.built == len(shards("store")) - there
    assert read_manifest(Path("store")).complete


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 12)
    return "texts"


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Any:
    return regard.load(folder, device="cpu")


def made(texts: str, out: str, model: Any, settings: Settings = SMALL, **options: Any) -> EmbedReport:
    return embed(texts, out, model=model, settings=settings, **options)


def test_what_a_store_holds(texts: str, tiny: Any) -> None:
    seen: list[EmbedProgress] = []
    report = made(texts, "store", tiny, progress=seen.append)
    manifest = read_manifest(Path("store"))
    rows, vectors = read_rows(Path("store"))
    folders = {path.name for path in Path("store/shards").iterdir()}
    assert manifest.complete
    assert {each.name for each in manifest.shards} == folders
    assert len(folders) == report.built == len(seen) > 3
    assert [each.shards for each in seen] == list(range(1, len(folders) + 1))
    assert report.counts == manifest.counts
    assert report.counts["documents"] == report.counts["parts"] == 12
    assert report.counts["rows"] == len(rows) == len(vectors) == sum(each.rows for each in manifest.shards)
    assert report.counts["tokens"] == report.new_tokens == seen[-1].tokens
    assert seen[-1].characters == sum(len(path.read_text()) for path in Path(texts).iterdir())
    assert {row["document"] for row in rows} == {path.as_posix() for path in Path(texts).iterdir()}
    assert pq.read_table("store/quarantine.parquet").num_rows == 0
    assert not leftovers(Path("store"))


def test_every_word_once_and_where_it_stands(texts: str, tiny: Any) -> None:
    made(texts, "store", tiny)
    rows, _ = read_rows(Path("store"))
    expected = [
        (path.as_posix(), *match.span(), match.group())
        for path in sorted(Path(texts).iterdir())
        for match in re.finditer(r"\w+", path.read_text(encoding="utf-8"))
    ]
    assert [(row["document"], row["start"], row["end"], row["form"]) for row in rows] == expected
    assert all(row["text"]["text"][row["start"] : row["end"]] == row["form"] for row in rows)


def test_the_same_bytes_again_and_after_a_resume(texts: str, tiny: Any) -> None:
    made(texts, "one", tiny)
    made(texts, "two", tiny)
    whole = store_digest(Path("one"))
    assert store_digest(Path("two")) == whole
    shards = sorted(Path("two/shards").iterdir())
    for path in shards[::2]:
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    half = Path("two/shards/.abc-xyz.part")
    half.mkdir()
    (half / "rows.parquet").write_bytes(b"half")
    report = made(texts, "two", tiny)
    assert report.built == len(shards[::2])
    assert 0 < report.new_tokens < report.counts["tokens"]
    assert store_digest(Path("two")) == whole
    assert not leftovers(Path("two"))


def test_an_index_of_an_earlier_version_goes_on(texts: str, tiny: Any) -> None:
    """Settings that are gone stay in the manifest, and in the hash that names the shards."""
    made(texts, "one", tiny)
    names = {path.name for path in Path("one/shards").iterdir()}
    earlier = {"backend": "torch", "precision": "float32", "prompt": None, "pooling": None}
    change_manifest(Path("one"), settings=read_manifest(Path("one")).settings | earlier, closeness={}, shards=[])
    assert made(texts, "one", tiny).built == len(names)
    shards = sorted(Path("one/shards").iterdir())
    assert not names & {path.name for path in shards}
    whole = store_digest(Path("one"))
    shutil.rmtree(shards[0])
    assert made(texts, "one", tiny).built == 1
    assert store_digest(Path("one")) == whole
    with Store("one") as store:
        assert len(store.find("bank").lines) > 0


def test_shards_are_read_anywhere_in_the_run(texts: str, tiny: Any) -> None:
    """An error after two shards leaves these two, which the next run takes."""
    made(texts, "one", tiny)

    def stop(done: EmbedProgress) -> None:
        if done.shards == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(texts, "two", tiny, progress=stop)
    assert not read_manifest(Path("two")).complete
    report = made(texts, "two", tiny)
    assert report.built == len(list(Path("two/shards").iterdir())) - 2
    assert store_digest(Path("two")) == store_digest(Path("one"))


def test_changed_texts_replace_their_shards(texts: str, tiny: Any) -> None:
    made(texts, "store", tiny)
    before = {path.name for path in Path("store/shards").iterdir()}
    Path(texts, "0011.txt").write_text("Another text altogether.")
    report = made(texts, "store", tiny)
    after = {path.name for path in Path("store/shards").iterdir()}
    assert report.built == 1
    assert len(before - after) == 1 == len(after - before)
    made(texts, "fresh", tiny)
    assert store_digest(Path("store")) == store_digest(Path("fresh"))


def test_a_manifest_names_no_shard_that_is_not_there(texts: str, tiny: Any) -> None:
    """Whenever a run ends: stale shards go after the manifest that does not name them is written."""
    made(texts, "store", tiny)
    Path(texts, "0000.txt").write_text("Another text altogether.")
    with mock.patch.object(Manifest, "write", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        made(texts, "store", tiny)
    assert {each.name for each in read_manifest(Path("store")).shards} <= {
        path.name for path in Path("store/shards").iterdir()
    }


def test_the_callers_products_and_threads_stay(texts: str, tiny: Any) -> None:
    import torch

    before = torch.get_num_threads(), dict(os.environ)
    made(texts, "store", tiny)
    assert (torch.get_num_threads(), dict(os.environ)) == before


def test_nothing_to_read_leaves_nothing(texts: str, tiny: Any) -> None:
    Path("empty.txt").write_text("")
    with pytest.raises(RegardError, match=r"no document could be read: empty.txt: "):
        made("empty.txt", "store", tiny)
    assert not Path("store").exists()
    Path("there").mkdir()
    with pytest.raises(RegardError, match=r"no document could be read"):
        made("empty.txt", "there", tiny)
    assert list(Path("there").iterdir()) == []
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    for path in Path(texts).iterdir():
        path.write_text("")
    with pytest.raises(RegardError, match=r"no document could be read: .*0000.txt.*, and 11 more"):
        made(texts, "store", tiny)
    assert store_digest(Path("store")) == whole


def test_rows_that_cannot_be_read_are_in_quarantine(texts: str, tiny: Any) -> None:
    Path("a.jsonl").write_text('{"text": "A whale."}\n{"text": null}\n{broken\n{"body": "x"}\n')
    report = made("a.jsonl", "store", tiny)
    quarantine = pq.read_table("store/quarantine.parquet").to_pylist()
    assert [(each.source, each.line, each.reason) for each in report.rejected] == [
        tuple(row.values()) for row in quarantine
    ]
    assert [row["line"] for row in quarantine] == [2, 3, 4]
    assert (report.counts["quarantined"], report.counts["documents"]) == (3, 1)


def test_columns_and_metadata(texts: str, tiny: Any) -> None:
    Path("a.csv").write_text("key,body,date\nx,A whale.,1851\ny,A bank.,2001\n")
    made("a.csv", "store", tiny, columns=Columns("body", "key"))
    rows, _ = read_rows(Path("store"))
    assert [(row["document"], row["form"]) for row in rows] == [("x", "A"), ("x", "whale"), ("y", "A"), ("y", "bank")]
    assert dict(rows[0]["text"]["metadata"]) == {"date": "1851"}
    with pytest.raises(RegardError, match="was made with columns"):
        made("a.csv", "store", tiny, columns=Columns("body"))


def test_what_cannot_be_written(texts: str, tiny: Any, tmp_path: Path) -> None:
    Path("file").write_text("")
    with pytest.raises(RegardError, match="is a file, expected a folder"):
        made(texts, "file", tiny)
    with pytest.raises(RegardError, match="there is no folder"):
        made(texts, "none/store", tiny)
    Path("other").mkdir()
    Path("other/notes").write_text("mine")
    with pytest.raises(RegardError, match="isn't empty and isn't a store \\('notes'\\)"):
        made(texts, "other", tiny)
    assert [path.name for path in Path("other").iterdir()] == ["notes"]
    denied = PermissionError(13, "Permission denied")
    with mock.patch.object(Path, "mkdir", side_effect=denied), pytest.raises(RegardError, match="Permission denied"):
        made(texts, "store", tiny)


def test_a_full_disk(texts: str, tiny: Any) -> None:
    made(texts, "one", tiny)
    write, calls = pq.write_table, []

    def full(*given: Any, **options: Any) -> None:
        calls.append(given)
        if len(calls) == 6:  # in the second shard, of which a file is there already
            raise OSError(28, "No space left on device")
        write(*given, **options)

    with (
        mock.patch("pyarrow.parquet.write_table", full),
        pytest.raises(RegardError, match="cannot write .*: No space left"),
    ):
        made(texts, "two", tiny)
    assert len(list(Path("two/shards").iterdir())) == 1
    assert not leftovers(Path("two"))
    made(texts, "two", tiny)
    assert store_digest(Path("two")) == store_digest(Path("one"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(layers=(2,)), "layer 2 is out of range: .*tiny has layers 0 to 1"),
        (Settings(window=32), "32"),
        (Settings(window=10, stride=9), "stride"),
        (Settings(lemma="xx"), "--lemma: simplemma knows no language 'xx'"),
    ],
)
def test_bad_settings_leave_nothing(texts: str, tiny: Any, settings: Settings, said: str) -> None:
    with pytest.raises(RegardError, match=said) as refused:
        made(texts, "store", tiny, settings)
    assert "\n" not in str(refused.value)
    assert not Path("store").exists()


def test_bad_workers(texts: str, tiny: Any) -> None:
    for workers in (0, -1, True):
        with pytest.raises(RegardError, match="workers: got .*, expected a whole number of processes above 0"):
            made(texts, "store", tiny, workers=workers)


def test_states_that_float16_cannot_hold(texts: str, tiny: Any) -> None:
    with (
        mock.patch("regard.corpus.writing.build_shard.HALF", 1e-3),
        pytest.raises(RegardError, match="more than float16 holds: use --dtype float32"),
    ):
        made(texts, "store", tiny)
    assert not Path("store").exists()
    made(texts, "store", tiny, replace(SMALL, dtype="float32"))


def texts_in(folder: Path, count: int, seed: int) -> Path:
    folder.mkdir()
    return write_texts(folder / "notes", count, seed=seed, longest=9)


def documents_in(store: str) -> list[str]:
    """The store's documents in their order, as its tables have them."""
    shards = [each.name for each in read_manifest(Path(store)).shards]
    tables = [pq.read_table(Path(store, "shards", name, "texts.parquet")) for name in shards]
    return [name for table in tables for name in table.column("document").to_pylist()]


def test_documents_that_are_gone_stay_until_they_are_pruned(texts: str, tiny: Any) -> None:
    few, settings = write_texts(Path("few"), 5, longest=9), Settings(shard=60)
    made("few", "store", tiny, settings)
    whole, names = read_manifest(Path("store")).shards, documents_in("store")
    assert len(whole) > 2
    Path(few, "0001.txt").unlink()
    Path(few, "0003.txt").write_text("")  # there, and empty
    for _ in range(2):
        report = made("few", "store", tiny, settings)
        assert (report.built, report.counts["documents"], report.counts["gone"]) == (0, 5, 2)
        assert report.notes == ("Kept 2 missing documents (first: 'few/0001.txt'). Pass `--prune` to remove them.",)
        assert (read_manifest(Path("store")).shards, documents_in("store")) == (whole, names)
    report = made("few", "store", tiny, settings, prune=True)
    assert report.notes == ("Removed 2 missing documents (first: 'few/0001.txt').",)
    assert (report.counts["documents"], "gone" in report.counts) == (3, False)
    assert documents_in("store") == names[::2]
    assert {path.name for path in Path("store/shards").iterdir()} == {
        each.name for each in read_manifest(Path("store")).shards
    }


def test_rows_that_are_gone_stay_too(texts: str, tiny: Any) -> None:
    for columns, file in ((None, "a.csv"), (Columns("text", "key"), "b.csv")):
        Path(file).write_text("key,text\nx,A whale.\ny,A bank.\nz,A ship.\n")
        made(file, f"{file}.store", tiny, columns=columns)
        names = documents_in(f"{file}.store")
        Path(file).write_text("key,text\nx,A whale.\n")
        report = made(file, f"{file}.store", tiny, columns=columns)
        assert (report.counts["gone"], documents_in(f"{file}.store")) == (2, names)


def test_a_folder_that_cannot_be_listed_any_more(texts: str, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("some").mkdir()
    write_texts(Path("some", "more"), 2)
    made("some", "store", tiny)
    whole, listed = store_digest(Path("store")), os.listdir

    def refuse(path: Any) -> list[str]:
        if Path(path).name == "more":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    Path("some/one.txt").write_text("A whale.")
    for prune in (False, True):
        with pytest.raises(RegardError, match=r"folder 'some/more' cannot be listed \(Permission denied\)"):
            made("some", "store", tiny, prune=prune)
    assert store_digest(Path("store")) == whole


def test_links_out_of_the_folder_are_counted_and_read_only_on_request(texts: str, tiny: Any) -> None:
    for name in ("outside/secret.txt", "some/one.txt"):
        Path(name).parent.mkdir()
        Path(name).write_text(f"A whale of {name}.")
    Path("some/folder").symlink_to("../outside")
    Path("some/file.txt").symlink_to("../outside/secret.txt")
    for options, documents in (({}, 1), ({"follow_links": True}, 2), ({}, 2)):  # what was read once stays
        report = made("some", "store", tiny, **options)
        assert report.counts["documents"] == documents
        assert any("2 links" in note for note in report.notes) == (not options)
    made("some", "store", tiny, prune=True)
    assert documents_in("store") == ["some/one.txt"]


def test_a_store_that_is_being_made_answers_from_its_finished_shards(
    texts: str, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.corpus.embed_texts.MANIFEST_PAUSE", 0)
    made(texts, "whole", tiny)
    with Store("whole") as opened:
        order = list(opened.shards)

    class EndedError(Exception):
        pass

    def looked(done: EmbedProgress) -> None:
        with Store("store") as opened:
            assert list(opened.shards) == order[: done.shards]
            assert f"not finished ({done.shards} shard" in opened.notes[0]
            assert {each for _, each, _ in opened.all_vectors()} == {0}
            assert opened.distinct("word")
        if done.shards == 3:
            raise EndedError

    with pytest.raises(EndedError):
        made(texts, "store", tiny, progress=looked)
    with Store("store") as opened:
        assert list(opened.shards) == order[:3]
    report = made(texts, "store", tiny)
    assert 0 < report.built == len(order) - 3
    assert store_digest(Path("store")) == store_digest(Path("whole"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dtype": "float32"}, "setting dtype float16, not float32"),
        ({"shard": 701}, "setting shard 700, not 701"),
        ({"statistics": False}, "setting statistics True, not False"),
        ({"layers": (0,)}, r"setting layers None, not \[0\]"),
        ({"where": Where("word", ("whale",))}, r"setting where None, not \['word', \['whale'\]\]"),
    ],
)
def test_other_settings_are_refused(texts: str, tiny: Any, changed: dict[str, Any], said: str) -> None:
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    with pytest.raises(RegardError, match=f"'.*store' was made with {said}: use another --out"):
        made(texts, "store", tiny, replace(SMALL, **changed))
    assert store_digest(Path("store")) == whole


def test_other_paths_models_versions_and_formats_are_refused(texts: str, tiny: Any, minilm: Any) -> None:
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    with pytest.raises(RegardError, match=r"made with paths \['/.*/texts'\], not \['/.*/texts/0001.txt'\]"):
        made("texts/0001.txt", "store", tiny)
    with pytest.raises(RegardError, match="made with model [0-9a-f]{64}, not [0-9a-f]{64}"):
        made(texts, "store", minilm)
    path = Path("store", NAME)
    change_manifest(Path("store"), environment=change_manifest(Path("store"))["environment"] | {"torch": "1.0"})
    with pytest.raises(RegardError, match="the store was made with torch 1.0, here is "):
        made(texts, "store", tiny)
    change_manifest(Path("store"), format=99)
    with pytest.raises(RegardError, match="has format 99, this version of regard reads format 2"):
        made(texts, "store", tiny)
    path.write_text("{")
    with pytest.raises(RegardError, match=NAME):
        made(texts, "store", tiny)
    assert whole != store_digest(Path("store"))  # by the edits above alone
    assert len(list(Path("store/shards").iterdir())) > 3


def test_a_store_goes_on_with_its_own_products_alone(texts: str, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    assert read_manifest(Path("store")).environment["tiles"] == "blas"
    if matmul.onednn_works():
        monkeypatch.setenv("REGARD_PRODUCT", "onednn")
        with pytest.raises(RegardError, match="product blas, .*; REGARD_PRODUCT=blas continues it"):
            made(texts, "store", tiny)
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    made(texts, "store", tiny)
    assert store_digest(Path("store")) == whole


def test_models_that_cannot_read_a_corpus(texts: str, tiny: Any) -> None:
    with mock.patch.object(type(tiny), "tokenizer", None), pytest.raises(RegardError, match="has no tokenizer"):
        made(texts, "store", tiny)
    assert not Path("store").exists()
    with mock.patch.object(tiny, "pairs", True), pytest.raises(RegardError, match="is an encoder-decoder"):
        made(texts, "store", tiny)
    assert not Path("store").exists()


def test_the_same_line_in_another_folder_is_refused(tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """81 documents became 1, in silence: another folder's `notes` is not that of the store."""
    texts_in(tmp_path / "a", 5, 0)
    texts_in(tmp_path / "b", 1, 1)
    monkeypatch.chdir(tmp_path / "a")
    made("notes", "../store", tiny)
    whole = store_digest(Path("../store"))
    monkeypatch.chdir(tmp_path / "b")
    said = rf"made with paths \['{tmp_path}/a/notes'\], not \['{tmp_path}/b/notes'\]"
    with pytest.raises(RegardError, match=said):
        made("notes", "../store", tiny)
    assert store_digest(Path("../store")) == whole
    for given in (str(tmp_path / "a" / "notes"), "../a/notes/"):  # however they are named
        report = made(given, "../store", tiny)
        assert (report.built, report.counts["documents"], report.notes) == (0, 5, ())
    assert store_digest(Path("../store")) == whole
    assert documents_in("../store") == [f"notes/{n:04}.txt" for n in range(5)]
