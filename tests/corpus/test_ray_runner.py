"""On Ray, here or on a cluster, with a worker or a node killed: the same bytes as in local processes."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from regard.corpus import ray_runner
from regard.corpus.embed_texts import embed
from regard.corpus.settings import Settings
from regard.errors import RegardError
from tests.support.corpora import leftovers, store_digest, write_texts

FLAGS = ["--shard", "2000"]
TOKEN = secrets.token_hex(32)
# Ray's own command resolves 127.0.0.1 to an address that others reach; here all listen on 127.0.0.1 alone
START = """
import sys
import ray._private.services as services
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
main()
"""
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "OMP_NUM_THREADS": "1",
}


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RegardError, match=r'--ray needs Ray: pip install "regard\[corpus,ray\]"'):
        ray_runner.on_ray("local")


def test_a_node_that_does_not_see_the_store(tmp_path: Path) -> None:
    (tmp_path / "shards" / ".seen-1.part").mkdir(parents=True)
    ray_runner._check_store_on_node(str(tmp_path / "shards" / ".seen-1.part"))
    with pytest.raises(RegardError, match=f"does not see the store's folder '{tmp_path}': it needs to be on a file"):
        ray_runner._check_store_on_node(str(tmp_path / "shards" / ".seen-2.part"))


@pytest.mark.ray
def test_a_node_that_does_not_start_in_time(monkeypatch: pytest.MonkeyPatch, ray_folder: Path) -> None:
    import ray

    def slow(**_: Any) -> None:
        raise Exception("The current node timed out during startup.\nThis could happen …")

    monkeypatch.setattr(ray, "init", slow)
    with (
        pytest.raises(RegardError, match="--ray: the cluster 'local' cannot be reached: The current node timed out"),
        ray_runner._connected_ray_cluster("local", 1),
    ):
        pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(group: int) -> list[tuple[int, str]]:
    """The processes of a group that run, with their commands."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if entry.name.isdigit() and int(fields[2]) == group and fields[0] != "Z":
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append((int(entry.name), command))
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[tuple[int, str]]:
    """The processes below a process that run, with their commands."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if entry.name.isdigit() and fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
        except OSError:
            continue
    found, ahead = [], [pid]
    while ahead:
        for child in parents.get(ahead.pop(), []):
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found.append((child, command))
            ahead.append(child)
    return found


class Node:
    """A node of a cluster: a `ray start` process that stays, and what it started."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "start", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=1",
             "--object-store-memory=80000000", "--disable-usage-stats", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip

    def raylets(self) -> list[int]:
        """The process id of the node's raylet; none where it has ended."""
        return [pid for pid, command in descendants(self.process.pid) if "/raylet/raylet " in command]

    def end(self) -> None:
        """Kill the node's processes, each by its id, and close what is read of them, of one that ended, too."""
        own = {pid for pid, _ in (*descendants(self.process.pid), *alive(self.process.pid))}
        for pid in own | ({self.process.pid} if self.process.poll() is None else set()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        with self.process:
            pass


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[Path]:
    """A folder with a short name: the names of sockets have 107 characters at most."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    made = Path(tempfile.mkdtemp(prefix="r"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def cluster(ray_folder: Path) -> Iterator[tuple[str, Node, Node]]:
    """Its address, and two nodes with a CPU each: the head, and one that can be killed."""
    port = free_port()
    folder = tempfile.mkdtemp(dir=ray_folder)
    head = Node("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")
    nodes = [head]
    try:
        until(lambda: reached(port), head)
        nodes.append(Node(f"--address=127.0.0.1:{port}"))
        until(nodes[1].raylets, nodes[1])
        yield f"127.0.0.1:{port}", nodes[0], nodes[1]
    finally:
        for node in reversed(nodes):
            node.end()


def reached(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(what: Any, node: Node | None = None, seconds: float = 120) -> None:
    """Wait for what becomes true; a node that ended meanwhile says why."""
    end = time.monotonic() + seconds
    while not what():
        if node is not None and node.process.poll() is not None:
            raise AssertionError(node.process.communicate()[0])
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def started(*arguments: str) -> "subprocess.Popen[str]":
    """The command, which finds the cluster on 127.0.0.1."""
    return subprocess.Popen(
        [sys.executable, "-m", "regard", "embed", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **ENVIRONMENT, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"},
    )  # fmt: skip


def shards(store: str) -> int:
    """How many shards of a store are finished."""
    folder = Path(store, "shards")
    return sum(not each.name.startswith(".") for each in folder.iterdir()) if folder.is_dir() else 0


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 250, longest=120)
    return "texts"


@pytest.fixture
def whole(texts: str, minilm: Any) -> str:
    """The digest of the texts' store, made in this process."""
    embed(texts, "whole", model=minilm, settings=Settings(shard=2000))
    return store_digest(Path("whole"))


LOCAL = """
import os, sys
from regard.cli.main import main
import regard.corpus.ray_runner as runner
run = runner._build_shards_on_ray
def spied(*given):
    import subprocess
    said = subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True).stdout
    open("listening", "w").write(said)
    return run(*given)
runner._build_shards_on_ray = spied
main(sys.argv[1:])
"""


@pytest.mark.ray
def test_local(texts: str, whole: str, ray_folder: Path) -> None:
    """A cluster for the run alone: it listens on 127.0.0.1, says nothing, and leaves nothing running or in the home."""
    home = Path("home")
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, "embed", texts, "--out", "store", *FLAGS, "--ray", "local", "--workers", "2"],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "TMPDIR": str(ray_folder), "HOME": str(home.absolute())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if " tokens/s" not in line] == []
    assert store_digest(Path("store")) == whole
    assert not leftovers(Path("store"))
    assert not (home / ".ray").exists()
    assert list(ray_folder.glob("ray-*")) == []
    names = ("gcs_server", "raylet", "ray::")
    listening = [
        line.split()[3] for line in Path("listening").read_text().splitlines() if any(n in line for n in names)
    ]
    assert len(listening) >= 3
    assert {place.rpartition(":")[0] for place in listening} <= {"127.0.0.1", "[::ffff:127.0.0.1]"}


@pytest.mark.ray
def test_a_cluster_with_a_worker_and_a_node_killed(texts: str, whole: str, cluster: tuple[str, Node, Node]) -> None:
    address, head, other = cluster
    run = started(texts, "--out", "store", *FLAGS, "--ray", address)
    try:
        until(lambda: shards("store") > 1 or run.poll() is not None)
        assert run.poll() is None, run.communicate()[1]
        busy = [pid for pid, command in descendants(head.process.pid) if command.startswith("ray::_work")]
        if busy:
            os.kill(busy[0], signal.SIGKILL)
        at = shards("store")
        # Where the cores are busy, the cluster may have given the node up by itself: lost is lost
        for raylet in other.raylets():
            os.kill(raylet, signal.SIGKILL)
        until(lambda: not other.raylets())
        assert at < len(list(Path("whole/shards").iterdir())) - 2  # killed in the midst of it
        _, err = run.communicate(timeout=240)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    assert run.returncode == 0, err
    assert store_digest(Path("store")) == whole
    assert not leftovers(Path("store"))
