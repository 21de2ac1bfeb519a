"""Records to protobuf and back: the agent's one module that knows both.

A record's fields have their message's names, so one rule serves all: None is unset, tuples are
repeated fields, dictionaries maps, dataclasses messages, enumerations go by name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from roof_agent import records
from roofline.v1 import measurement_pb2, model_pb2, run_pb2, session_pb2

T = TypeVar("T")

_CONTENT_FIELDS: dict[type[Any], str] = {
    records.RunStart: "start",
    records.Measurement: "measurement",
    records.ModelPart: "model_part",
    records.RunEnd: "end",
}
_ENUM_PREFIXES: dict[type[enum.Enum], Any] = {
    records.Outcome: measurement_pb2.Outcome,
    records.Grade: measurement_pb2.Grade,
}


def record_message(record: records.Record) -> run_pb2.Record:
    """Return a record as it goes over the wire and into the spool."""
    message = run_pb2.Record(seq=record.seq)
    _fill(record.content, getattr(message, _CONTENT_FIELDS[type(record.content)]))
    return message


def parse_record(message: run_pb2.Record) -> records.Record:
    """Return a message's record. Raises ValueError for one without content."""
    name = message.WhichOneof("content")
    for kind, field in _CONTENT_FIELDS.items():
        if field == name:
            return records.Record(message.seq, _read(kind, getattr(message, field)))
    raise ValueError(f"record {message.seq} has no content that this version knows")


def device_message(device: records.Device) -> Any:
    """Return a device as Hello carries it."""
    message = session_pb2.Hello().device
    _fill(device, message)
    return message


def parse_plan(message: session_pb2.Plan) -> records.Plan:
    """Return the collector's plan."""
    return _read(records.Plan, message)


def plan_message(plan: records.Plan) -> session_pb2.Plan:
    """Return a plan as HelloAck carries it."""
    message = session_pb2.Plan()
    _fill(plan, message)
    return message


def part_message(part: records.ModelPart) -> model_pb2.ModelPart:
    """Return a piece of a model as FetchModel streams it."""
    message = model_pb2.ModelPart()
    _fill(part, message)
    return message


def parse_part(message: model_pb2.ModelPart) -> records.ModelPart:
    """Return a piece of a model."""
    return _read(records.ModelPart, message)


def _fill(record: Any, message: Message) -> None:
    # A message without any field set must still be seen as there.
    message.SetInParent()
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value is None:
            continue
        target = getattr(message, field.name)
        if dataclasses.is_dataclass(value):
            _fill(value, target)
        elif isinstance(value, tuple):
            for item in value:
                if dataclasses.is_dataclass(item):
                    _fill(item, target.add())
                else:
                    target.append(item)
        elif isinstance(value, dict):
            target.update(value)
        elif isinstance(value, enum.Enum):
            kind = _ENUM_PREFIXES[type(value)]
            setattr(message, field.name, kind.Value(f"{type(value).__name__.upper()}_{value.name}"))
        else:
            setattr(message, field.name, value)


def _read(kind: Callable[..., T], message: Message) -> T:
    values: dict[str, Any] = {}
    for name, (hint, optional) in _hints(kind).items():
        present = message.DESCRIPTOR.fields_by_name[name].has_presence
        if optional and present and not message.HasField(name):
            values[name] = None
            continue
        value = getattr(message, name)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            label = _ENUM_PREFIXES[hint].Name(value).removeprefix(f"{hint.__name__.upper()}_")
            values[name] = None if label == "UNSPECIFIED" and optional else hint[label]
        elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
            values[name] = _read(hint, value)
        elif typing.get_origin(hint) is tuple:
            values[name] = _read_all(typing.get_args(hint)[0], value)
        elif typing.get_origin(hint) is dict:
            values[name] = dict(value)
        else:
            values[name] = value
    return kind(**values)


def _read_all(kind: Any, values: Any) -> tuple[Any, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(_read(typing.cast("Callable[..., Any]", kind), value) for value in values)
    return tuple(values)


@functools.cache
def _hints(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return each field's type without its None, and whether it had one."""
    found = {}
    for name, hint in typing.get_type_hints(kind).items():
        if isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint):
            found[name] = (next(arg for arg in typing.get_args(hint) if arg is not type(None)), True)
        else:
            found[name] = (hint, False)
    return {field.name: found[field.name] for field in dataclasses.fields(kind)}
