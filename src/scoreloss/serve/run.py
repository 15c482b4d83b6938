"""Bind, load, answer, and stop when told to: with all answered that had begun."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from scoreloss.checks import InputError, reason_of
from scoreloss.model import load
from scoreloss.serve.app import Service
from scoreloss.serve.guard import is_loopback
from scoreloss.serve.limits import Limits
from scoreloss.serve.protocol import protocol_of

BACKLOG = 1024


class Server(uvicorn.Server):
    """uvicorn's, which has the queue done at once when it is to stop."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what has begun, and take nothing new."""
        self._service.batches.hurry()
        await super().shutdown(sockets)


def serve(
    folder: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    backbone: str | None = None,
    listening: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the model of a folder until SIGTERM or SIGINT. ``listening`` is told the address.

    Everybody who reaches a loopback address may ask; any other ``host`` needs a ``token``. Port 0 is any free one.
    """
    limits = limits or Limits()
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it tells of every form that is wrong
    family, address = _resolved(host, port)
    _check_token(host, str(address[0]), token)
    model = load(folder, backbone=backbone)
    with _bound(family, address, host, port) as bound:
        failures: list[BaseException] = []

        def failed(problem: BaseException) -> None:
            failures.append(problem)
            server.should_exit = True

        service = Service(model, limits=limits, token=token, host=host, failed=failed)
        server = Server(
            service,
            uvicorn.Config(
                service.app,
                http=protocol_of(limits),
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_level=logging.WARNING,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=max(1, round(limits.idle_seconds)),
                timeout_graceful_shutdown=max(1, round(limits.grace_seconds)),
            ),
        )
        shown = f"[{host}]" if ":" in host else host
        listening(f"http://{shown}:{bound.getsockname()[1]}")
        _run(server, bound)
    if failures:
        if isinstance(failures[0], (InputError, ImportError)):
            raise failures[0]
        raise InputError(f"the model cannot be used: {reason_of(failures[0])}") from failures[0]


def _run(server: uvicorn.Server, bound: socket.socket) -> None:
    """uvicorn raises the signal that stopped it once more: here that shall end nothing, as all is answered."""
    if threading.current_thread() is not threading.main_thread():
        asyncio.run(server.serve(sockets=[bound]))
        return
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: None) for number in signals]
    try:
        asyncio.run(server.serve(sockets=[bound]))
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InputError(f"port is {port!r}: it must be a number from 0 to 65535")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError(f"host is {host!r}: there is no such address") from None
    family, _, _, _, address = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)[0]
    return family, (str(address[0]), int(address[1]))


def _check_token(host: str, address: str, token: str | None) -> None:
    if token is not None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("the token must be printable ASCII without spaces, and not empty")
        return
    if not is_loopback(address):
        raise InputError(
            f"host {host} can be reached from elsewhere, which needs a token: --token, or SCORELOSS_TOKEN"
        )


def _bound(family: socket.AddressFamily, address: tuple[str, int], host: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as problem:
        bound.close()
        raise InputError(
            f"port {port} of {host} cannot be used: {(problem.strerror or str(problem)).lower()}"
        ) from problem
    return bound
