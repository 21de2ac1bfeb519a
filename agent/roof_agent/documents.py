"""Records as JSON and back, by the types of their fields: what a child answers, what a file holds."""

from __future__ import annotations

import base64
import dataclasses
import enum
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# A reader refuses a newer one; an older one is upgraded on load.
SCHEMA = 1


def to_document(value: Any) -> Any:
    """Return `value` as JSON has it: dataclasses as objects, bytes in base64; None is left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: to_document(item) for name, item in pairs if item is not None}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): to_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, Path) else value


def from_document(kind: type[T], document: Any) -> T:
    """Return the `kind` that `to_document` wrote. Raises TypeError where a field is missing or unknown."""
    return typing.cast(T, _read(kind, document))


def _read(hint: Any, value: Any) -> Any:
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        # `X | None`, or plain JSON types that need no reading.
        inner = [argument for argument in arguments if argument is not type(None)]
        return value if value is None or len(inner) > 1 else _read(inner[0], value)
    if arguments:
        if typing.get_origin(hint) is dict:
            return {arguments[0](key): _read(arguments[1], item) for key, item in value.items()}
        return tuple(_read(arguments[0], item) for item in value)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return typing.cast(type, hint)(**{name: _read(hints.get(name), item) for name, item in value.items()})
    if hint is bytes:
        return base64.b64decode(value)
    is_plain = not (isinstance(hint, type) and issubclass(hint, enum.Enum | Path))
    return value if is_plain else hint(value)
