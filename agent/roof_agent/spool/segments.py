"""How records lie in a segment: framed by magic, length and CRC32, one behind the other."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from roofline.v1 import run_pb2

_MAGIC = b"\xf1RFL"
_HEAD = struct.Struct("<4sII")


def frame(message: run_pb2.Record) -> bytes:
    """Return a record as it lies in a segment."""
    payload = message.SerializeToString()
    return _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload


def records(data: bytes) -> Iterator[run_pb2.Record | None]:
    """Yield a segment's intact records in order, None for each damaged stretch."""
    at = 0
    whole = True
    while 0 <= at < len(data):
        found = _record_at(data, at)
        if found is not None:
            record, at = found
            whole = True
            yield record
            continue
        if whole:
            whole = False
            yield None
        at = data.find(_MAGIC, at + 1)


def _record_at(data: bytes, at: int) -> tuple[run_pb2.Record, int] | None:
    if len(data) - at < _HEAD.size:
        return None
    magic, length, crc = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + length
    if magic != _MAGIC or end > len(data):
        return None
    payload = data[at + _HEAD.size : end]
    if zlib.crc32(payload) != crc:
        return None
    try:
        return run_pb2.Record.FromString(payload), end
    except DecodeError:
        return None
