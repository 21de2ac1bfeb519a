"""Weightless models: pieces as they come, and whole ones once their digest has been checked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection, Engine, delete, func, select

from roof_collector.store.hot import insert_new
from roof_collector.store.rows import Part
from roof_collector.store.schema import model, model_part


def put_model(connection: Connection, data: bytes, name: str, origin: str, now_ns: int) -> str:
    """Keep a whole model and return its digest; one that is there stays as it is."""
    sha256 = hashlib.sha256(data).hexdigest()
    insert_new(connection, model, (), [(sha256, name, origin, len(data), data, now_ns)])
    return sha256


def get_model(engine: Engine, sha256: str) -> tuple[str, bytes] | None:
    """Return a model's name and bytes, None where it isn't here."""
    with engine.connect() as connection:
        found = connection.execute(select(model.c.name, model.c.data).where(model.c.sha256 == sha256)).first()
    return None if found is None else (found.name, found.data)


def store_parts(
    connection: Connection, run: int, parts: Sequence[Part], now_ns: int
) -> list[tuple[int, str]]:
    """Keep pieces of models, and make a model of those that are whole.

    Returns (seq, reason) of the pieces whose model came out wrong; its pieces are forgotten.
    """
    rejections = []
    for sha256 in dict.fromkeys(part.sha256 for part in parts):
        if connection.execute(select(model.c.sha256).where(model.c.sha256 == sha256)).first():
            continue
        own = [part for part in parts if part.sha256 == sha256]
        rows = [(run, sha256, part.start_byte, part.name, part.size_bytes, part.data) for part in own]
        insert_new(connection, model_part, (), rows)
        reason = _assemble(connection, run, own[-1], now_ns)
        if reason:
            rejections.append((own[-1].seq, reason))
    return rejections


def drop_parts(connection: Connection, run: int) -> None:
    """Forget the pieces of a run that has ended: they won't become whole."""
    connection.execute(delete(model_part).where(model_part.c.run == run))


def _assemble(connection: Connection, run: int, part: Part, now_ns: int) -> str:
    """Make the model of `part` if all of it is here; return what is wrong with it."""
    own = (model_part.c.run == run) & (model_part.c.sha256 == part.sha256)
    here = connection.execute(select(func.sum(func.length(model_part.c.data))).where(own)).scalar_one()
    if here < part.size_bytes:
        return ""
    pieces = connection.execute(
        select(model_part.c.data).where(own).order_by(model_part.c.start_byte)
    ).scalars()
    data = b"".join(pieces)
    connection.execute(delete(model_part).where(own))
    if hashlib.sha256(data).hexdigest() != part.sha256:
        return f"the pieces of model {part.name} don't give its digest"
    put_model(connection, data, part.name, "agent", now_ns)
    return ""
