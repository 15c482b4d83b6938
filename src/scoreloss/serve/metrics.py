"""What the service tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts of one service; several may live in one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "scoreloss_requests",
            "Requests that were answered",
            ("path", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "scoreloss_request_seconds",
            "From the head of a request to the end of its answer",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._open = Gauge(
            "scoreloss_requests_in_progress", "Requests that are being answered", registry=self._registry
        )
        self._inputs = Histogram(
            "scoreloss_batch_inputs",
            "Inputs that were computed together",
            buckets=SIZES,
            registry=self._registry,
        )
        self._together = Histogram(
            "scoreloss_batch_requests",
            "Requests that were computed together",
            buckets=SIZES,
            registry=self._registry,
        )
        self._depth = Gauge("scoreloss_queue_inputs", "Inputs that wait", registry=self._registry)
        self._ready = Gauge("scoreloss_ready", "1 when the model is loaded", registry=self._registry)

    def watch(self, depth: Callable[[], float], ready: Callable[[], float]) -> None:
        """Where to look, whenever somebody asks."""
        self._depth.set_function(depth)
        self._ready.set_function(ready)

    def begun(self) -> None:
        """A request came."""
        self._open.inc()

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request is done; the status is 499 where the client went away."""
        self._open.dec()
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def computed(self, requests: int, inputs: int) -> None:
        """A batch is about to be computed."""
        self._together.observe(requests)
        self._inputs.observe(inputs)

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self._registry)
