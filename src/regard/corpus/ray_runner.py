"""Build shards on a Ray cluster: one task a shard, the same bytes as local processes on one kind of CPU."""

import importlib.util
import os
import secrets
import socket
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from regard.corpus.embed_texts import Runner
from regard.corpus.environment import set_environment
from regard.corpus.writing.shard import PART, ShardPlan
from regard.corpus.writing.workers import Built, Job, build, in_order, prepare
from regard.errors import RegardError

RETRIES = 3  # of a task whose worker or node was lost
WAIT = 10.0  # seconds for a cluster to answer
HERE = "127.0.0.1"


def on_ray(address: str, workers: int | None = None) -> Runner:
    """Return a runner for `embed` that gives shards to a Ray cluster.

    address: "local" starts one here, bound to 127.0.0.1, for the time of the run; else as `ray.init` takes it. workers:
    how many tasks at once, None for as many as the cluster has CPUs.
    """
    if importlib.util.find_spec("ray") is None:
        raise RegardError('--ray needs Ray: pip install "regard[corpus,ray]"')

    def run(job: Job, plans: Iterable[ShardPlan]) -> Iterator[Built]:
        with _connected_ray_cluster(address, workers):
            yield from _build_shards_on_ray(workers, job, plans)

    return run


def _build_shards_on_ray(workers: int | None, job: Job, plans: Iterable[ShardPlan]) -> Iterator[Built]:
    """Build the shards on the cluster that this process is connected with."""
    import ray

    # a folder that is named as a half-written shard: a run that was killed leaves no other trace of it
    mark = job.folder / f".seen-{uuid.uuid4().hex}{PART}"
    mark.mkdir()
    try:
        look = ray.remote(num_cpus=0)(_check_store_on_node)  # every node has to see what this process has made
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        ray.get([look.options(scheduling_strategy=strategy(node, soft=False)).remote(str(mark)) for node in nodes])
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        shared = ray.put(job)
        at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

        def submit(plan: ShardPlan) -> "Future[dict[str, int]]":
            return task.remote(shared, str(mark), plan).future()

        yield from in_order(job, plans, at_once, submit)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, RegardError):
            raise RegardError(str(error.cause)) from error
        raise RegardError(f"--ray: a task failed: {_line_of_ray_error(error, -1)}") from error
    except ray.exceptions.RayError as error:
        raise RegardError(
            f"--ray: {_line_of_ray_error(error)}: what is written stays, the same command goes on from there"
        ) from error
    finally:
        mark.rmdir()


@contextmanager
def _connected_ray_cluster(address: str, workers: int | None) -> Iterator[None]:
    """Connect with a cluster, or start one here, for the time of the block."""
    local = address == "local"
    wanted = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if local:
        # Ray takes 127.0.0.1 for an address that others reach, and listens there, unless it is told that there are none
        wanted |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        # who else is on this machine cannot use it; else Ray would leave a token in the home folder, and say so
        wanted |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with set_environment(wanted), tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        import ray

        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if local:
            options |= {"include_dashboard": False, "num_cpus": workers, "_node_ip_address": HERE, "_temp_dir": folder}
        try:
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if host and port.isdecimal():  # where nothing listens, Ray itself would try for minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT).close()
            ray.init(address=address, **options)
        except Exception as error:  # Ray raises that itself where a node does not start in time
            raise RegardError(
                f"--ray: the cluster {address!r} cannot be reached: {_line_of_ray_error(error)}"
            ) from error
        try:
            bound = [node["NodeManagerAddress"] for node in ray.nodes()]
            if local and bound != [HERE]:
                raise RegardError(
                    f"--ray local: Ray listens on {', '.join(bound)} and not on {HERE} alone: it was imported before; "
                    "start it in a new process"
                )
            yield
        finally:
            ray.shutdown()


def _check_store_on_node(mark: str) -> None:
    """Check that this node sees the store's folder."""
    if not os.path.isdir(mark):
        store = os.path.dirname(os.path.dirname(mark))
        raise RegardError(
            f"--ray: the node {socket.gethostname()} does not see the store's folder {store!r}: it needs to be on a "
            "file system that all nodes share, under the same path"
        )


def _work(job: Job, mark: str, plan: ShardPlan) -> dict[str, int]:
    _check_store_on_node(mark)  # a node that joined meanwhile would write its shard where nobody looks for it
    return build(job, prepare(job), plan)


def _line_of_ray_error(error: Exception, number: int = 0) -> str:
    """A line of an error's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[number]
