"""The protocol's past: what was ever sent is read as it was meant, and no number changes its meaning.

`tests/data/protos` holds for each version of the protocol the fields it had, and messages as they went
over the wire then. Lines and files are added there, never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from roof_agent import records
from roofline.v1 import device_pb2, measurement_pb2, model_pb2, run_pb2, session_pb2

DATA = Path(__file__).parents[1] / "data" / "protos"
FILES = (device_pb2, measurement_pb2, model_pb2, run_pb2, session_pb2)
MESSAGES = {name: cls for file in FILES for name, cls in vars(file).items() if hasattr(cls, "FromString")}


def described(file: FileDescriptor) -> Iterator[str]:
    """Yield one line a field and enumeration value: what a number means on the wire."""
    for message in file.message_types_by_name.values():
        for field in message.fields:
            yield f"{message.name}.{field.number} {_kind(field)} {field.name}"
    for kind in file.enum_types_by_name.values():
        for value in kind.values:
            yield f"{kind.name}.{value.number} enum {value.name}"


def _kind(field: FieldDescriptor) -> str:
    repeated = isinstance(getattr(field, "default_value", None), list)
    presence = "repeated" if repeated else "optional" if field.has_presence else "plain"
    type_name = field.message_type.name if field.message_type else field.enum_type and field.enum_type.name
    return f"{presence} {type_name or field.type}"


def today() -> list[str]:
    return [line for file in FILES for line in described(file.DESCRIPTOR)]


def test_f19_no_field_was_taken_away_or_given_another_meaning() -> None:
    known = (DATA / "v1.fields").read_text().splitlines()
    assert len(known) > 150
    assert not set(known) - set(today())


def test_every_field_is_written_down() -> None:
    """A new field's line goes to v1.fields with it: from then on it stays."""
    assert not set(today()) - set((DATA / "v1.fields").read_text().splitlines())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.bin")), ids=lambda path: path.name)
def test_f19_messages_of_the_past_are_read_as_they_were_meant(path: Path) -> None:
    message = MESSAGES[path.name.split("-")[0]].FromString(path.read_bytes())
    expected = json_format.Parse(path.with_suffix(".json").read_text(), type(message)())
    assert message == expected


def test_f19_fields_of_the_future_are_kept() -> None:
    future = b"\xfa\x7f\x03new"  # Field 2047, three bytes.
    for cls in MESSAGES.values():
        assert future in cls.FromString(future).SerializeToString()


@pytest.mark.parametrize(
    "kind", [kind for kind in vars(records).values() if hasattr(kind, "__dataclass_fields__")]
)
def test_a_record_and_its_message_have_the_same_fields(kind: type) -> None:
    descriptor: Descriptor = MESSAGES[kind.__name__].DESCRIPTOR
    ours = {field.name for field in fields(kind)}
    if kind is records.Record:
        ours = ours - {"content"} | {field.name for field in descriptor.oneofs_by_name["content"].fields}
    assert {field.name for field in descriptor.fields} == ours
