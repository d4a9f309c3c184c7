"""The thread that works for the main thread, where no signal can cut an operation in two.

Python runs signal handlers in the main thread, between any two steps of whatever that executes; what they raise, as
KeyboardInterrupt for Ctrl-C, ends it there.  An operation cut in two could neither be continued nor repeated.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

from spyrec.runtime.streams.background_thread import BackgroundThread, sleep

Result = TypeVar("Result")


class IsLeft(Protocol):
    """Says whether whoever wanted a task done waits for it no more."""

    def __call__(self) -> bool:
        """Return whether the task may end early."""
        ...


class _Task(Generic[Result]):
    """A function to call, and what came of it; ``done`` is told at the end."""

    def __init__(self, function: Callable[[IsLeft], Result]) -> None:
        self._function: Callable[[IsLeft], Result] | None = function
        self.is_left = False
        self.done: SimpleQueue[None] = SimpleQueue()
        self.error: BaseException | None = None
        self.results: list[Result] = []

    def execute(self) -> None:
        """Call the function, unless nobody waits for it any more; whoever goes on then finds nothing held here."""
        function, self._function = self._function, None
        try:
            if function is not None and not self.is_left:
                self.results.append(function(lambda: self.is_left))
        except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
            self.error = error
        finally:
            del function
            self.done.put(None)


class _AnyTask(Protocol):
    def execute(self) -> None: ...


class DeviceThread:
    """A thread of a device's own, which begins with the first call and ends with :meth:`close`, or with the device."""

    def __init__(self) -> None:
        self._thread: BackgroundThread | None = None
        self._tasks = self._fresh_tasks()

    def call(self, function: Callable[[IsLeft], Result]) -> Result:
        """Call a function where no signal interrupts it, and return what it returns or raise what it raises.

        In the main thread another thread calls it; this one waits, and may be interrupted at that.  Then the function
        is told that nobody waits any more, and goes on to where it can end well.
        """
        if threading.get_ident() != threading.main_thread().ident:
            return function(_never)
        task = _Task(function)
        try:
            self._begin()
            self._tasks.put(task)
            sleep(task.done)
        except BaseException:
            task.is_left = True
            raise
        if task.error is not None:
            error, task.error = task.error, None
            try:
                raise error
            finally:
                del error  # its frames know this one
        return task.results[0]

    def close(self) -> None:
        """End the thread when it has done what it is at; it begins anew where there is another call."""
        thread = self._thread
        if thread is not None:
            self._tasks.put(None)
            thread.join()
            self._tasks = self._fresh_tasks()  # the others hold the end of the thread
            self._thread = None

    def _fresh_tasks(self) -> SimpleQueue[_AnyTask | None]:
        tasks: SimpleQueue[_AnyTask | None] = SimpleQueue()
        weakref.finalize(self, tasks.put, None).atexit = False
        return tasks

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_of_this_process:
            self._thread = BackgroundThread(partial(_serve, self._tasks), "spyrec device")


def _never() -> bool:
    return False


def _serve(tasks: SimpleQueue[_AnyTask | None]) -> None:
    """Execute tasks until there is none; between two of them nothing of a device is held."""
    while True:
        task = tasks.get()
        if task is None:
            tasks.put(None)  # there are two threads where an interrupt came when the first one was made
            return
        task.execute()
        del task
