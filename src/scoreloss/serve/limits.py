"""How much the service takes: of one request, of all that wait, and of the patience for slow clients."""

from __future__ import annotations

from dataclasses import dataclass

from scoreloss.checks import InputError, number_from

NUMBERS = 1 << 21
"""So many scores an answer may hold: inputs times labels."""


@dataclass(frozen=True)
class Limits:
    """All of them; what is beyond is refused in JSON."""

    body: int = 16 << 20
    """Bytes of a request."""
    inputs: int = 256
    """Of a request; fewer where there are very many labels."""
    queue: int = 1024
    """Inputs that wait; a request that comes then is told to come again."""
    batch: int = 64
    """Inputs that are computed together."""
    wait: float = 0.002
    """Seconds that the first request of a batch waits for others."""
    bodies: int = 256 << 20
    """Bytes of all requests that are being read."""
    connections: int = 1024
    body_seconds: float = 30.0
    """For a body to arrive; and so long an answer may be stuck because nobody reads it."""
    head_seconds: float = 15.0
    """For the head of a request to arrive."""
    idle_seconds: float = 15.0
    """Between two requests of a connection."""
    grace_seconds: float = 60.0
    """For what has begun, once the service is told to stop."""

    def __post_init__(self) -> None:
        for name in ("body", "inputs", "queue", "batch", "bodies", "connections"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}: it must be a whole number from 1")
        number_from("wait", self.wait, 0)
        for name in ("body_seconds", "head_seconds", "idle_seconds", "grace_seconds"):
            number_from(name, getattr(self, name), 0, strict=True)

    def of_request(self, labels: int) -> int:
        """How many inputs a request may have."""
        return max(1, min(self.inputs, NUMBERS // labels))
