"""HTTP as uvicorn speaks it by h11, with errors in JSON, and without patience for heads that never end."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from scoreloss.serve.limits import Limits


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """The protocol of one service."""

    class Protocol(H11Protocol):
        """One connection."""

        _head: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Somebody is there."""
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._say(503, "too many connections are open")
            else:
                self._expect_head()

        def data_received(self, data: bytes) -> None:
            """Something came; the head of a request must be complete in time."""
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._expect_nothing()
            elif self._head is None and not self.transport.is_closing():
                self._expect_head()

        def on_response_complete(self) -> None:
            """An answer is out; what comes next has its own time."""
            self._expect_nothing()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            """Nobody is there any more."""
            self._expect_nothing()
            self._unstuck()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            """More waits to be read than the system takes."""
            super().pause_writing()
            self._unstuck()
            self._watch(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            """The client reads."""
            self._unstuck()
            super().resume_writing()

        def send_400_response(self, msg: str) -> None:
            """What came is no HTTP."""
            self._say(400, "this is no valid HTTP request")

        def _expect_head(self) -> None:
            self._head = self.loop.call_later(limits.head_seconds, self._too_slow)

        def _expect_nothing(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _watch(self, before: int) -> None:
            """Cut off a client that reads nothing."""

            def look() -> None:
                now = self.transport.get_write_buffer_size()
                if now < before:
                    self._watch(now)
                else:
                    self.transport.abort()

            self._stuck = self.loop.call_later(limits.body_seconds, look)

        def _unstuck(self) -> None:
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def _too_slow(self) -> None:
            self._head = None
            self._say(408, "the head of the request took too long to arrive")

        def _say(self, status: int, line: str) -> None:
            """An error before there is a request."""
            if self.transport.is_closing():
                return
            content = json.dumps({"error": line}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(content))),
                ("connection", "close"),
            ]
            try:
                reason = HTTPStatus(status).phrase.encode()
                for event in (
                    h11.Response(status_code=status, headers=headers, reason=reason),
                    h11.Data(data=content),
                    h11.EndOfMessage(),
                ):
                    self.transport.write(self.conn.send(event) or b"")
            except h11.LocalProtocolError:  # an answer is on its way already
                pass
            self.transport.close()

    return Protocol
