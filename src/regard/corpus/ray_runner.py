"""Build shards on a Ray cluster: one task a shard, the same bytes as local processes on one kind of CPU."""

import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from regard.corpus.embed_texts import Runner
from regard.corpus.plan_shards import ShardPlan
from regard.corpus.workers import Built, Job, build, in_order, prepare
from regard.errors import RegardError

RETRIES = 3  # of a task whose worker or node was lost


def on_ray(address: str, workers: int | None = None) -> Runner:
    """Return a runner for `embed` that gives shards to a Ray cluster.

    address: "local" starts one here, bound to 127.0.0.1, for the time of the run; else as `ray.init` takes it. workers:
    how many tasks at once, None for as many as the cluster has CPUs.

    Raises:
        RegardError: Ray is not installed, or (when it runs) the cluster cannot be reached, or a node does not see the
            store's folder.
    """
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise RegardError('--ray needs Ray: pip install "regard[corpus,ray]"') from error

    def run(job: Job, plans: Iterable[ShardPlan]) -> Iterator[Built]:
        return _run(address, workers, job, plans)

    return run


def _run(address: str, workers: int | None, job: Job, plans: Iterable[ShardPlan]) -> Iterator[Built]:
    import ray

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    options: dict[str, Any] = {"log_to_driver": False, "include_dashboard": False, "configure_logging": False}
    try:
        if address == "local":
            ray.init(address="local", _node_ip_address="127.0.0.1", num_cpus=workers, **options)
        else:
            del options["include_dashboard"]
            ray.init(address=address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise RegardError(f"--ray: the cluster {address!r} cannot be reached: {str(error).splitlines()[0]}") from error
    try:
        _check_folder(job)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        shared = ray.put(job)
        at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

        def submit(plan: ShardPlan) -> "Future[dict[str, int]]":
            return task.remote(shared, plan).future()

        yield from in_order(job, plans, at_once, submit)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, RegardError) else None
        raise cause or RegardError(f"--ray: a task failed: {str(error).splitlines()[-1]}") from error
    except ray.exceptions.RayError as error:
        raise RegardError(
            f"--ray: {str(error).splitlines()[0]}: what is written stays, the same command goes on from there"
        ) from error
    finally:
        ray.shutdown()


def _check_folder(job: Job) -> None:
    """Check that every node sees the store's folder, by a file that this process writes and each node reads."""
    import ray

    mark = job.folder / f".seen-{uuid.uuid4().hex}"
    mark.write_text("seen")
    try:
        look = ray.remote(num_cpus=0)(_sees)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node for node in ray.nodes() if node["Alive"]]
        seen = ray.get(
            [look.options(scheduling_strategy=strategy(node["NodeID"], soft=False)).remote(str(mark)) for node in nodes]
        )
    finally:
        mark.unlink()
    blind = [node["NodeManagerAddress"] for node, sees in zip(nodes, seen, strict=True) if not sees]
    if blind:
        raise RegardError(
            f"--ray: the node {blind[0]} does not see the store's folder {str(job.folder.parent)!r}: it needs to be on "
            "a file system that all nodes share, under the same path"
        )


def _sees(mark: str) -> bool:
    return os.path.exists(mark)


def _work(job: Job, plan: ShardPlan) -> dict[str, int]:
    return build(job, prepare(job), plan)
