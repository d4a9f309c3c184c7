"""What is used of dask.distributed, which has no types of its own, and the one place that imports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from spyrec.diagnostics import refuse


class Future(Protocol):
    """A task of Dask's as its client sees it; ``status``: pending, finished, error, cancelled or lost."""

    key: str
    status: str

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call when the status is pending no longer, in a thread of Dask's."""
        ...

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the task has raised."""
        ...

    def release(self) -> None:
        """Let the scheduler forget the task."""
        ...


class Client(Protocol):
    """A connection to a scheduler."""

    status: str
    dashboard_link: str

    def submit(  # noqa: PLR0913 -- Dask's own
        self,
        function: Callable[..., bytes],
        *arguments: object,
        key: str,
        pure: bool,
        retries: int,
        workers: Sequence[str] | None = None,
        allow_other_workers: bool = False,
    ) -> Future:
        """Hand a call to the scheduler, for some workers alone or, as long as they are there, rather than others."""
        ...

    def gather(self, futures: Sequence[Future], errors: str) -> Sequence[bytes]:
        """Return the results of calls; those that failed are left out with ``errors="skip"``."""
        ...

    def get_events(self, topic: str) -> Sequence[tuple[float, Mapping[str, str]]]:
        """Return what was noted under a topic, with the time of each."""
        ...

    def nthreads(self) -> Mapping[str, int]:
        """Return the threads of each worker by address."""
        ...

    def close(self, timeout: float) -> None:
        """Close the connection."""
        ...


class LocalCluster(Protocol):
    """A scheduler in this process, and workers beside it."""

    scheduler_address: str
    dashboard_link: str

    def close(self, timeout: float) -> None:
        """End the workers."""
        ...


class SchedulerCalls(Protocol):
    """What a worker asks its scheduler; each call is a coroutine."""

    def events(self, *, topic: str) -> object:
        """Return what was noted under a topic."""
        ...

    def log_event(self, *, topic: str, msg: Mapping[str, str]) -> object:
        """Note something under a topic."""
        ...


class DaskWorker(Protocol):
    """The worker that a call runs on."""

    address: str
    local_directory: str
    loop: object
    scheduler: SchedulerCalls

    def log_event(self, topic: str, msg: Mapping[str, str]) -> None:
        """Note something under a topic of the scheduler's; it is sent in order with all else, and not waited for."""
        ...


class Distributed(Protocol):
    """The module."""

    Client: Callable[..., Client]
    LocalCluster: Callable[..., LocalCluster]
    get_worker: Callable[[], DaskWorker]


def is_installed() -> bool:
    """Whether the extra ``sweep`` is there, as far as this package needs it."""
    return find_spec("distributed") is not None


def distributed() -> Distributed:
    """Return the module.  Errors: SPY0840 it is not installed."""
    if not is_installed():
        raise refuse("SPY0840", "sweeps need dask.distributed, which is not installed")
    return cast("Distributed", import_module("distributed"))


class _Config(Protocol):
    """Dask's configuration, which is this process's."""

    def set(self, values: Mapping[str, str]) -> AbstractContextManager[object]:
        """Have other values while a block runs."""
        ...


def configured(values: Mapping[str, str]) -> AbstractContextManager[object]:
    """Return a block in which Dask has other values in its configuration.  Errors: SPY0840 it is not installed."""
    distributed()
    return cast("_Config", import_module("dask.config")).set(values)


class _Security(Protocol):
    """What Dask's configuration says of TLS."""

    def get_connection_args(self, role: str) -> Mapping[str, object]:
        """Return what a connection of a role is made with."""
        ...


def has_certificates() -> bool:
    """Whether Dask's configuration has what a client needs for an encrypted connection."""
    security = cast("_Security", import_module("distributed.security").Security())
    return security.get_connection_args("client").get("ssl_context") is not None


def waited_for(worker: DaskWorker, call: Callable[..., object], topic: str, **arguments: object) -> object:
    """Return what a call of the worker's scheduler answers, from a thread of its tasks."""
    sync = cast("Callable[..., object]", import_module("distributed.utils").sync)
    return sync(worker.loop, call, topic=topic, **arguments)
