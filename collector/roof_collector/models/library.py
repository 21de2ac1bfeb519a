"""Networks by name: files, those of the zoo, and those that were added to a database, weightless."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roof_agent.errors import UsageError

if TYPE_CHECKING:
    import onnx
    from sqlalchemy import Engine

ZOO = "zoo:"
# What `model.origin` says of a network that a person added.
ADDED = "added"


@dataclass(frozen=True)
class Stored:
    """A network in a database; its identity is the digest of its weightless form."""

    name: str
    sha256: str
    size_bytes: int


def load(text: str, *, batch: int | None = None) -> onnx.ModelProto:
    """Return the network that `text` means: "zoo:NAME", or an ONNX file.

    `batch` concerns the zoo alone, which builds its networks for it. External weights are neither
    needed nor read. What there isn't, or isn't ONNX, is a UsageError.
    """
    if text.startswith(ZOO):
        from roof_collector.models import zoo

        return zoo.build(text.removeprefix(ZOO), batch=1 if batch is None else batch)
    from roof_collector.analysis import load_model

    return load_model(text)


def add(engine: Engine, path: Path, name: str = "") -> Stored:
    """Keep the weightless form of an ONNX file under `name`, the file's own where empty.

    A network that is there keeps its first name. A name of the zoo is a UsageError.
    """
    from roof_agent.models.weightless import digest, strip
    from roof_collector.analysis import load_model
    from roof_collector.models import zoo
    from roof_collector.store.parts import get_model, put_model

    name = name or path.stem
    if name in zoo.names():
        raise UsageError(f"{name} is a network of the zoo; give it another --name")
    data, _ = digest(strip(load_model(path)))
    with engine.begin() as connection:
        sha256 = put_model(connection, data, name, ADDED, time.time_ns())
    kept = get_model(engine, sha256)
    assert kept is not None
    return Stored(kept[0], sha256, len(data))


def added(engine: Engine) -> list[Stored]:
    """Return the networks that were added, by name."""
    from sqlalchemy import select

    from roof_collector.store.schema import model

    columns = (model.c.name, model.c.sha256, model.c.size_bytes)
    with engine.connect() as connection:
        rows = connection.execute(select(*columns).where(model.c.origin == ADDED).order_by(*columns[:2]))
        return [Stored(*row) for row in rows]
