"""What leaves the store by the command line: a list of runs, and a whole run with every repetition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from roof_collector.store.packing import unpack_doubles
from roof_collector.store.schema import device, layer, measurement, network, rejection, run

# A reader refuses a newer one.
SCHEMA = 1

# Numbers of rows, which mean nothing elsewhere.
_OWN = {"id", "run", "device_id"}


def newest_runs(connection: Connection, fingerprint: str, limit: int) -> Sequence[Row[Any]]:
    """Return runs with their board's `fingerprint` and `hostname`, the newest first.

    Those of boards whose fingerprint begins with `fingerprint`.
    """
    chosen = (
        select(run, device.c.fingerprint, device.c.hostname)
        .join(device)
        .where(device.c.fingerprint.startswith(fingerprint, autoescape=True))
        .order_by(run.c.id.desc())
        .limit(limit)
    )
    return connection.execute(chosen).all()


def run_document(connection: Connection, run_id: str, fingerprint: str = "") -> dict[str, Any] | None:
    """Return the first run whose identifier begins with `run_id`, of a device whose fingerprint begins so.

    None where there is none. Columns have their names in `schema`; `repetitions` is a list.
    """
    chosen = (
        select(run, device.c.fingerprint)
        .join(device)
        .where(
            run.c.run_id.startswith(run_id, autoescape=True),
            device.c.fingerprint.startswith(fingerprint, autoescape=True),
        )
        .order_by(run.c.id)
    )
    found = connection.execute(chosen).first()
    if found is None:
        return None
    networks = {row.seq: _plain(row) for row in _of_run(connection, network, found.id)}
    for detail in networks.values():
        detail["nodes"] = []
    for row in _of_run(connection, layer, found.id):
        networks[row.seq]["nodes"].append(_plain(row))
    measurements = [
        {
            **_plain(row),
            "repetitions": list(unpack_doubles(row.repetitions)),
            "network": networks.get(row.seq),
        }
        for row in _of_run(connection, measurement, found.id)
    ]
    return {
        "schema": SCHEMA,
        "run": _plain(found),
        "measurements": measurements,
        "rejections": [_plain(row) for row in _of_run(connection, rejection, found.id)],
    }


def _of_run(connection: Connection, table: Table, number: int) -> Iterable[Row[Any]]:
    return connection.execute(select(table).where(table.c.run == number).order_by(*table.primary_key))


def _plain(row: Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name not in _OWN}
