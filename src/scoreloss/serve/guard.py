"""What stands before the application: who may ask, how large and how slow a request may be.

A body is read here, whole and within its limits, before anything else sees the request.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import time
from collections.abc import Collection
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scoreloss.serve.bodies import Refused
from scoreloss.serve.limits import Limits
from scoreloss.serve.metrics import Metrics

OPEN = frozenset({"/", "/page.css", "/page.js", "/health"})
"""What may be seen without a token: nothing of the model."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
LOCAL = frozenset({"localhost", ""})

LINGER_SECONDS, LINGER_BYTES = 5.0, 1 << 28
"""A client that still sends is listened to for so long, or it would never read what it is told."""

GONE = 499
"""The status that is counted where the client went away."""


class Gone(Exception):
    """The client went away."""


class Guard:
    """An application behind the limits, a token (if there is one) and the counts."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        metrics: Metrics,
        token: str | None,
        host: str,
        paths: Collection[str],
    ) -> None:
        self._names = LOCAL | {host.lower()}
        self._app, self._limits, self._metrics, self._paths = app, limits, metrics, paths
        self._token = None if token is None else token.encode()
        self._reading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), GONE
        self._metrics.begun()

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self._answer(scope, receive, send_counted)
        except Gone:
            pass
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.answered(path, status, time.perf_counter() - start)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        held = 0
        try:
            self._check_client(scope, headers)
            declared = headers.get(b"content-length", b"0")
            if int(declared) > self._limits.body:
                raise self._too_large()
            body = bytearray()
            async with asyncio.timeout(self._limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    body += part
                    held += len(part)
                    self._reading += len(part)
                    more = message.get("more_body", False)
                    if len(body) > self._limits.body:
                        raise self._too_large()
                    if self._reading > self._limits.bodies:
                        raise Refused(503, "too much is being sent at once", {"Retry-After": "1"})
            await self._app(scope, _replayed(bytes(body), receive), send)
        except TimeoutError:
            await _refuse(Refused(408, "the body took too long to arrive"), receive, send)
        except Refused as problem:
            await _refuse(problem, receive, send)
        finally:
            self._reading -= held

    def _too_large(self) -> Refused:
        return Refused(413, f"the body is too large: {self._limits.body:,} bytes may be")

    def _check_client(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if self._token is None:
            host = headers.get(b"host", b"").decode("latin-1").lower()
            name = (host if host.endswith("]") else host.rpartition(":")[0] or host).strip("[]")
            if name not in self._names and not is_loopback(name):  # a page elsewhere whose name leads here
                raise Refused(421, "this service answers to localhost only: another name needs a token")
            return
        if scope["path"] in OPEN:
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            raise Refused(
                401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )


def is_loopback(address: str) -> bool:
    """Whether an address in numbers is one of this machine alone."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse(problem: Refused, receive: Receive, send: Send) -> None:
    """Say it at once, then hear the client out for a while: closing while it sends would lose the answer."""
    content = json.dumps({"error": problem.said}).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        "Connection": "close",
        **(problem.headers or {}),
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    heard = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while heard < LINGER_BYTES:
                message = await receive()
                heard += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    break
    await send({"type": "http.response.body", "body": b"", "more_body": False})
