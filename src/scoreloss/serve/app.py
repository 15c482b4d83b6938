"""The endpoints: predict, model, health, metrics, and the pages."""

from __future__ import annotations

import asyncio
import io
import logging
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import PurePath
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from scoreloss import __version__
from scoreloss.checks import InputError, reason_of
from scoreloss.model import Model
from scoreloss.serve import described
from scoreloss.serve.answers import encoded, together
from scoreloss.serve.batches import Batches, Full
from scoreloss.serve.bodies import Refused, inputs_of, schema_of
from scoreloss.serve.guard import Guard
from scoreloss.serve.limits import Limits
from scoreloss.serve.metrics import CONTENT_TYPE, Metrics

LOG = logging.getLogger("uvicorn.error")
RETRY = {"Retry-After": "1"}
ASSETS = {"/": ("page.html", "text/html"), "/page.css": ("page.css", "text/css")}
ASSETS["/page.js"] = ("page.js", "text/javascript")


class Service:
    """One model behind one application."""

    def __init__(
        self,
        model: Model,
        *,
        limits: Limits,
        token: str | None = None,
        host: str = "localhost",
        failed: Callable[[BaseException], None] = lambda problem: None,
    ) -> None:
        self.model, self.limits = model, limits
        self.metrics = Metrics()
        self.most = limits.of_request(len(model.labels))
        self.batches = Batches(
            self._work,
            batch=limits.batch,
            wait=limits.wait,
            queue=limits.queue,
            seen=self.metrics.computed,
        )
        self.metrics.watch(lambda: self.batches.depth, lambda: float(self.batches.ready))
        self._failed = failed
        inner = _application(self)
        paths = {path for route in inner.routes if (path := getattr(route, "path", None))}
        self.app = Guard(inner, limits=limits, metrics=self.metrics, token=token, host=host, paths=paths)

    def warm_up(self) -> None:
        """The first prediction, which loads the backbone."""
        inputs: Any = ["a text"]
        if self.model.kind != "text":
            inputs = [_grey()] if self.model.kind == "image" else np.zeros((1, self.model.features.width))
        answer = together(self.model, [inputs])[0]
        if isinstance(answer, Exception):
            raise answer

    def _work(self, requests: Sequence[Any]) -> Sequence[Any]:
        answers = together(self.model, requests)
        return [answer if isinstance(answer, Exception) else encoded(answer) for answer in answers]

    async def predict(self, request: Request) -> bytes:
        """The answer to a request, as JSON."""
        inputs = await inputs_of(request, self.model, self.most)
        try:
            answer: bytes = await self.batches.do(inputs, len(inputs))
        except Full:
            raise Refused(503, "too many inputs wait: come again", RETRY) from None
        except InputError as problem:
            raise Refused(422, reason_of(problem)) from None
        return answer

    def about(self) -> dict[str, Any]:
        """What the model is."""
        model, record = self.model, self.model.record
        thresholds = None if model.thresholds is None else [_storable(t) for t in model.thresholds.tolist()]
        name = model.features.backbone
        return {
            "kind": model.kind,
            "labels": list(model.labels),
            "thresholds": thresholds,
            "rule": record["rule"],
            "loss": record["loss"],
            "backbone": {
                "name": PurePath(name).name if PurePath(name).is_absolute() else name,
                "width": model.features.width,
            },
            "validation": record["validation"],
            "test": record["test"],
            "data": {"name": record["data"]["name"], "examples": record["data"]["examples"]},
            "versions": {**record["versions"], "serving": __version__},
            "limits": {"inputs": self.most, "bytes": self.limits.body},
        }

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """While the server runs; its end waits for what is in the queue."""
        self.batches.start(self.warm_up, self._failed)
        yield
        await asyncio.to_thread(self.batches.end)


def _application(service: Service) -> FastAPI:
    app = FastAPI(
        title="scoreloss serve",
        description="Labels, scores and expected F1 of inputs, by a fitted model.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=service.lifespan,
    )
    app.exception_handler(Refused)(_refused)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(Exception)(_unexpected)

    @app.post(
        "/predict",
        summary="Labels, expected F1 and scores of one input or several",
        openapi_extra={"requestBody": schema_of(service.model, service.most)},
        responses=described.predictions(service.model.labels),
    )
    async def predict(request: Request) -> Response:
        return Response(await service.predict(request), media_type="application/json")

    @app.get("/model", summary="What the model is", responses=described.about())
    def model() -> Response:
        return JSONResponse(service.about())

    @app.get("/health", summary="Whether the model is loaded", responses=described.health())
    async def health() -> Response:
        ready = service.batches.ready
        return JSONResponse({"ready": ready}, 200 if ready else 503, None if ready else RETRY)

    @app.get("/metrics", summary="Counts for Prometheus", responses=described.metrics(CONTENT_TYPE))
    def metrics() -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return Response(described.page(app.openapi()), media_type="text/html")

    for path, (name, kind) in ASSETS.items():
        app.add_api_route(path, _asset(name, kind), methods=["GET"], include_in_schema=False)
    return app


def _asset(name: str, kind: str) -> Callable[[], Response]:
    content = (files("scoreloss.serve") / name).read_bytes()

    def asset() -> Response:
        return Response(content, media_type=kind)

    return asset


def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Refused)
    return JSONResponse({"error": problem.said}, problem.status, problem.headers)


def _http(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return JSONResponse({"error": str(problem.detail)}, problem.status_code, problem.headers)


def _invalid(_: Request, problem: Exception) -> Response:
    return JSONResponse({"error": reason_of(problem)}, 422)


def _unexpected(_: Request, problem: Exception) -> Response:
    """The client gets a line; the trace is in the log of the server."""
    return JSONResponse({"error": "something went wrong here: see the log of the server"}, 500)


def _storable(value: float) -> float | str:
    """As ``model.json`` has it."""
    return value if math.isfinite(value) else str(value)


def _grey() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (64, 64), (128, 128, 128)).save(file, "PNG")
    return file.getvalue()
