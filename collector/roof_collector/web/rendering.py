"""A view as HTML, JSON or CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response, StreamingResponse

from roof_collector import __version__
from roof_collector.web import formats
from roof_collector.web.errors import PageError
from roof_collector.web.exports import csv_lines
from roof_collector.web.tables import MAX_SIZE
from roof_collector.web.views import View
from roof_dashboards import TEMPLATES

# Builds the view of a page of its main table, with so many rows.
Rebuild = Callable[[int, int], View]


def environment() -> Environment:
    """Return the templates' environment: everything is escaped, and an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": formats.number,
        "measured": formats.measured,
        "si": formats.si,
        "size": formats.size,
        "heat": formats.heat,
        "slug": formats.slug,
        "cpu_list": formats.cpu_list,
        "groups": formats.groups,
        "detail": formats.detail,
    }
    made.globals |= {"version": __version__}
    return made


def html(request: Request, view: View) -> Response:
    """Render a view's template."""
    templates: Environment = request.app.state.templates
    text = templates.get_template(view.template).render(
        view=view,
        title=view.title,
        doc=view.document,
        tables=view.tables,
        query=view.query,
        path=request.url.path,
        **view.context,
    )
    return HTMLResponse(text)


def as_json(view: View) -> Response:
    """Return a view's document."""
    # NaN and infinity are refused at the door of the store, so they are an error here.
    text = json.dumps(asdict(view.document), ensure_ascii=False, allow_nan=False)
    return Response(text, media_type="application/json")


def as_csv(name: str, wanted: str, rebuild: Rebuild) -> Response:
    """Return one table of a page, whole: its main one is read page by page while it is sent."""
    first = rebuild(1, MAX_SIZE)
    chosen = wanted or next(iter(first.tables))
    if chosen not in first.tables:
        raise PageError(404, f"this page has no table of that name; it has {', '.join(first.tables)}")
    return StreamingResponse(
        csv_lines(_fields(first, chosen), _rows(first, chosen, rebuild)),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}-{chosen}.csv"'},
    )


def _rows(first: View, chosen: str, rebuild: Rebuild) -> Iterator[Any]:
    view = first
    page = view.tables[chosen][1]
    yield from page.rows
    if chosen != next(iter(first.tables)):
        return
    for number in range(2, page.pages + 1):
        yield from rebuild(number, MAX_SIZE).tables[chosen][1].rows


def _fields(view: View, chosen: str) -> list[str]:
    table, page = view.tables[chosen]
    for row in page.rows:
        if is_dataclass(row):
            # Conditions are objects of their own: JSON has them.
            return [field.name for field in fields(row) if not field.name.startswith("conditions_")]
    return [column.key for column in table.columns]
