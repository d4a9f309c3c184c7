"""Where tasks run: a cluster of this machine's processes, or the scheduler of any Dask cluster by its address."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.sweep.dask_names import Client, configured, distributed, has_certificates

LOCAL = "local"
ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx|inproc)://[^\s/]+(/.*)?")

_CONNECT_SECONDS = 10.0
_PATIENCE_SECONDS = 300.0
_TALKING = ("distributed.client", "distributed.core", "distributed.comm.tcp", "tornado.application")


class Cluster(Protocol):
    """Where tasks run."""

    @property
    def patience_seconds(self) -> float:
        """How long a scheduler or the first worker is waited for."""
        ...

    def connect(self) -> Client:
        """Return a new connection.  Errors: SPY0841 nobody answers."""
        ...


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The scheduler at an address."""

    address: str
    patience_seconds: float = _PATIENCE_SECONDS

    def connect(self) -> Client:
        """Return a new connection; results that come as anything but bytes are not unpacked."""
        if self.address.startswith("tls://") and not has_certificates():
            fact = f'"{self.address}" is encrypted, and Dask\'s configuration names no certificate of the client'
            raise refuse("SPY0841", fact, hint="see docs/sweep.md: distributed.comm.tls.client")
        module = distributed()
        for name in _TALKING:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what is lost, and found again, the engine says
        try:
            return module.Client(
                self.address,
                timeout=_CONNECT_SECONDS,
                set_as_default=False,
                deserializers=["dask", "msgpack", "error"],
            )
        except (OSError, ValueError, TypeError, ImportError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise refuse("SPY0841", f'the scheduler "{self.address}" does not answer: {reason[:200]}') from None


def usable_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def cluster_at(address: str, workers: int | None = None) -> Generator[Scheduler]:
    """Yield a cluster: ``local`` for one with so many worker processes that ends with the block, else that address.

    Errors: SPY0840 Dask is not installed, SPY0841 nobody answers there.
    """
    if address != LOCAL:
        yield Scheduler(address)
        return
    # a worker that is started again on a busy machine takes longer than Dask waits before it goes on without
    with configured({"distributed.deploy.lost-worker-timeout": f"{_PATIENCE_SECONDS} s"}):
        local = distributed().LocalCluster(
            n_workers=workers or usable_processors(),
            threads_per_worker=1,
            processes=True,
            memory_limit="auto",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        )
        try:
            yield Scheduler(local.scheduler_address)
        finally:
            local.close(timeout=10)
