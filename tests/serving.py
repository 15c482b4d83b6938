"""A server in a process of its own, and what a client says to it with the standard library alone."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

STARTS, ANSWERS = 300, 120
"""Seconds, for machines that have other things to do."""

WITH_LIMITS = (
    "import sys, json\nfrom scoreloss.serve import Limits, serve\n"
    "serve(sys.argv[1], port=0, limits=Limits(**json.loads(sys.argv[2])), "
    "listening=lambda address: print('at', address, flush=True))"
)


class Server:
    """Where it is, and how it is asked."""

    def __init__(self, process, address, token=None):
        self.process, self.address, self.token = process, address, token
        self.port = urlsplit(address).port

    def connection(self, timeout=ANSWERS):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, path, body=None, headers=None, method=None):
        """Status, headers and body; a dict goes as JSON."""
        headers = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        connection = self.connection()
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def predict(self, inputs):
        status, _, body = self.ask("/predict", {"inputs": inputs})
        assert status == 200, body
        return json.loads(body)["predictions"]

    def error(self, *arguments, **options):
        """The status of what must be an error, and its line."""
        status, headers, body = self.ask(*arguments, **options)
        return status, line_of(headers, body)

    def metric(self, name):
        lines = self.ask("/metrics")[2].decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def raw(self, content):
        """A socket that has sent this."""
        found = socket.create_connection(("127.0.0.1", self.port), timeout=ANSWERS)
        found.sendall(content)
        return found

    def wait_for(self, condition):
        until = time.monotonic() + STARTS
        while not condition():
            assert time.monotonic() < until
            assert self.process.poll() is None
            time.sleep(0.02)


def line_of(headers, body):
    """The one line of an error, which is JSON and tells nothing of the inside."""
    assert headers["Content-Type"].startswith("application/json")
    found = json.loads(body)
    assert list(found) == ["error"]
    assert found["error"]
    assert "\n" not in found["error"]
    assert "Traceback" not in found["error"]
    return found["error"]


def read_response(sock):
    """Status, headers and body of what a socket gets."""
    response = http.client.HTTPResponse(sock)
    response.begin()
    return response.status, response.headers, response.read()


def started(arguments, environment=None):
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


@contextmanager
def served(folder, *options, limits=None, token=None, environment=None, quiet=True, ready=True):
    """A server that is ended whatever happens; at the end it may have said nothing on standard error."""
    if limits is None:
        arguments = ["-m", "scoreloss", "serve", folder, "--port", "0", *options]
    else:
        arguments = ["-c", WITH_LIMITS, folder, json.dumps(limits)]
    process = started(arguments, environment)
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.stderr.read())
        server = Server(process, line.split()[-1], token)
        if ready:
            server.wait_for(lambda: server.ask("/health")[0] == 200)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            _, said = process.communicate(timeout=STARTS)
        finally:
            process.kill()
    assert process.returncode == 0, said
    if quiet:
        assert said == "", said


def refused(arguments, environment=None):
    """What a server says that does not start: one line."""
    process = started(["-m", "scoreloss", "serve", *arguments], environment)
    try:
        out, said = process.communicate(timeout=STARTS)
    finally:
        process.kill()
    assert process.returncode == 2
    assert out == ""
    assert said.count("\n") == 1
    return said
