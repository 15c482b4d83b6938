"""A queue and one thread: what waits is done together. Knows nothing of models, and nothing of HTTP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

Work = Callable[[Sequence[Any]], Sequence[Any]]
"""Jobs to answers, in the same order; an answer that is an exception is raised where the job was put."""


class Full(Exception):
    """So much waits already that no more is taken."""


class Waiting(NamedTuple):
    """A job, its size, and where its answer goes."""

    job: Any
    size: int
    answer: asyncio.Future[Any]


class Batches:
    """Jobs of many coroutines, done by one thread, as many together as wait and as fit into a batch."""

    def __init__(
        self,
        work: Work,
        *,
        batch: int,
        wait: float,
        queue: int,
        seen: Callable[[int, int], None] = lambda jobs, size: None,
    ) -> None:
        self._work, self._batch, self._wait, self._queue, self._seen = work, batch, wait, queue, seen
        self._jobs: deque[Waiting] = deque()
        self._size = 0
        self._change = threading.Condition()
        self._ending = self._hurry = False
        self._thread: threading.Thread | None = None
        self.ready = False
        """Whether jobs are being done; before, they wait."""

    @property
    def depth(self) -> int:
        """The size of all that waits."""
        return self._size

    def start(self, prepare: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        """Begin with what comes before the first job; where that fails, nothing else is done."""
        self._thread = threading.Thread(target=self._run, args=(prepare, failed), name="model", daemon=True)
        self._thread.start()

    async def do(self, job: Any, size: int) -> Any:
        """The answer to a job; ``Full`` where it cannot be taken."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._change:
            if self._ending or (self._size and self._size + size > self._queue):
                raise Full
            self._jobs.append(Waiting(job, size, future))
            self._size += size
            self._change.notify()
        return await future

    def hurry(self) -> None:
        """From now on nothing waits for company."""
        with self._change:
            self._hurry = True
            self._change.notify()

    def end(self) -> None:
        """Do all that waits, and take no more."""
        with self._change:
            self._ending = self._hurry = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self, prepare: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        try:
            prepare()
        except BaseException as problem:
            failed(problem)
            with self._change:
                self._ending = True
                batch, self._size = list(self._jobs), 0
                self._jobs.clear()
            _tell(batch, [problem] * len(batch))
            return
        self.ready = True
        while batch := self._next():
            self._seen(len(batch), sum(waiting.size for waiting in batch))
            try:
                answers = self._work([waiting.job for waiting in batch])
            except BaseException as problem:
                answers = [problem] * len(batch)
            _tell(batch, answers)
        self.ready = False

    def _next(self) -> list[Waiting]:
        """The jobs of the next batch; none at the end. Waits for company, but not for long."""
        with self._change:
            while not self._jobs and not self._ending:
                self._change.wait()
            until = time.monotonic() + self._wait
            while self._size < self._batch and not self._hurry and (left := until - time.monotonic()) > 0:
                self._change.wait(left)
            batch: list[Waiting] = []
            taken = 0
            while self._jobs and (not batch or taken + self._jobs[0].size <= self._batch):
                batch.append(self._jobs.popleft())
                taken += batch[-1].size
            self._size -= taken
            return batch


def _tell(batch: Sequence[Waiting], answers: Sequence[Any]) -> None:
    """In the loop of those who wait, once for all of them."""
    if not batch:
        return
    with suppress(RuntimeError):  # the loop was closed: nobody waits any more
        batch[0].answer.get_loop().call_soon_threadsafe(_deliver, batch, answers)


def _deliver(batch: Sequence[Waiting], answers: Sequence[Any]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.answer.done():  # whoever asked is gone
            continue
        if isinstance(answer, BaseException):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)
