"""The collector's pages: each as HTML, as `.json`, as `.csv`, and as JSON under `/api/v1`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import Engine
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from roof_collector import __version__
from roof_collector.web import rendering
from roof_collector.web.documents import DeviceDocument, DevicesDocument, NetworkDocument, RunDocument
from roof_collector.web.errors import PageError
from roof_collector.web.reading import PageStore
from roof_collector.web.security import Guard
from roof_collector.web.tables import TableQuery
from roof_collector.web.views import View
from roof_collector.web.views.device import device_page
from roof_collector.web.views.devices import devices_page
from roof_collector.web.views.networks import network_page
from roof_collector.web.views.run import run_page
from roof_dashboards import STATIC

API = "/api/v1"
_READING = ["GET", "HEAD"]


@dataclass(frozen=True)
class Page:
    """A page: its address, what builds its view, and the document that it gives as JSON."""

    path: str
    build: Callable[..., View]
    document: type


PAGES = (
    Page("/devices", devices_page, DevicesDocument),
    Page("/devices/{fingerprint}", device_page, DeviceDocument),
    Page("/runs/{run_id}", run_page, RunDocument),
    Page("/runs/{run_id}/networks/{measurement}", network_page, NetworkDocument),
)


def create_app(engine: Engine, *, hosts: Iterable[str] = ()) -> FastAPI:
    """Return the pages over a store; `hosts` are names to answer to besides the loopback's."""
    app = FastAPI(
        title="roofline",
        version=__version__,
        description="What boards measured. Every figure is SI; see each field's document.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # its scripts come from a CDN
        redoc_url=None,
    )
    app.state.page_store = PageStore(engine)
    app.state.templates = rendering.environment()
    app.add_middleware(GZipMiddleware, minimum_size=500, compresslevel=6)
    app.add_middleware(Guard, hosts=hosts)
    for page in PAGES:
        _add_page(app, page)
    app.add_api_route("/", _endpoint(devices_page, rendering.html), methods=_READING, include_in_schema=False)
    app.add_api_route(
        "/.json", lambda: RedirectResponse("/devices.json"), methods=_READING, include_in_schema=False
    )
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(PageError, _page_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _add_page(app: FastAPI, page: Page) -> None:
    """Add a page's addresses; those with a suffix first, or the plain one would take it for a name."""
    name = page.build.__name__
    as_json = _endpoint(page.build, lambda _request, view: rendering.as_json(view))
    app.add_api_route(
        API + page.path,
        as_json,
        response_model=page.document,
        response_class=JSONResponse,
        operation_id=name,
        summary=inspect.getdoc(page.document),
    )
    app.add_api_route(
        page.path + ".json", as_json, methods=_READING, include_in_schema=False, response_model=None
    )
    app.add_api_route(
        page.path + ".csv", _csv_endpoint(page.build), methods=_READING, include_in_schema=False
    )
    app.add_api_route(
        page.path, _endpoint(page.build, rendering.html), methods=_READING, include_in_schema=False
    )


def _endpoint(
    build: Callable[..., View], respond: Callable[[Request, View], Response]
) -> Callable[..., Response]:
    """Return an endpoint with the builder's own parameters."""

    def endpoint(request: Request, **arguments: Any) -> Response:
        return respond(request, build(**arguments))

    return _signed(endpoint, build)


def _csv_endpoint(build: Callable[..., View]) -> Callable[..., Response]:
    """Return an endpoint that sends one of the page's tables."""

    def endpoint(request: Request, *, table: str, query: TableQuery, **arguments: Any) -> Response:
        def rebuild(page: int, size: int) -> View:
            return build(query=replace(query, page=page, size=size), **arguments)

        return rendering.as_csv(build.__name__.removesuffix("_page"), table, rebuild)

    named = inspect.Parameter(
        "table",
        inspect.Parameter.KEYWORD_ONLY,
        default="",
        annotation=Annotated[
            str, Query(max_length=50, description="a table of the page, the main one where empty")
        ],
    )
    return _signed(endpoint, build, named)


def _signed(
    endpoint: Callable[..., Response], build: Callable[..., View], *more: inspect.Parameter
) -> Callable[..., Response]:
    """Give an endpoint its builder's parameters: FastAPI reads them off the signature."""
    own = inspect.signature(build, eval_str=True).parameters.values()
    parameters = [
        inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request),
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
        *more,
    ]
    signature = inspect.Signature(parameters, return_annotation=Response)
    endpoint.__signature__ = signature  # type: ignore[attr-defined]
    endpoint.__doc__ = build.__doc__
    return endpoint


def _page_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PageError)
    return _problem(request, error.status, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    line = "there is no such page" if error.status_code == 404 else str(error.detail)
    return _problem(request, error.status_code, line)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _problem(request, 400, f"{first['loc'][-1]} in the address: {first['msg']}")


def _problem(request: Request, status: int, line: str) -> Response:
    """Answer with one line, in the form that was asked for."""
    path = request.url.path
    if path.startswith(API) or path.endswith((".json", ".csv")):
        return JSONResponse({"error": line}, status)
    template = request.app.state.templates.get_template("error.html")
    return HTMLResponse(template.render(title=f"{status}", line=line, path=path), status)
