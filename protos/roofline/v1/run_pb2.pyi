from roofline.v1 import device_pb2 as _device_pb2
from roofline.v1 import measurement_pb2 as _measurement_pb2
from roofline.v1 import model_pb2 as _model_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Record(_message.Message):
    __slots__ = ("seq", "start", "measurement", "model_part", "end")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    MODEL_PART_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    seq: int
    start: RunStart
    measurement: _measurement_pb2.Measurement
    model_part: _model_pb2.ModelPart
    end: RunEnd
    def __init__(self, seq: _Optional[int] = ..., start: _Optional[_Union[RunStart, _Mapping]] = ..., measurement: _Optional[_Union[_measurement_pb2.Measurement, _Mapping]] = ..., model_part: _Optional[_Union[_model_pb2.ModelPart, _Mapping]] = ..., end: _Optional[_Union[RunEnd, _Mapping]] = ...) -> None: ...

class RunStart(_message.Message):
    __slots__ = ("device", "agent_version", "preset", "boot_id", "monotonic_ns", "wall_unix_ns", "planned_measurements", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    WALL_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    device: _device_pb2.Device
    agent_version: str
    preset: str
    boot_id: str
    monotonic_ns: int
    wall_unix_ns: int
    planned_measurements: int
    labels: _containers.ScalarMap[str, str]
    def __init__(self, device: _Optional[_Union[_device_pb2.Device, _Mapping]] = ..., agent_version: _Optional[str] = ..., preset: _Optional[str] = ..., boot_id: _Optional[str] = ..., monotonic_ns: _Optional[int] = ..., wall_unix_ns: _Optional[int] = ..., planned_measurements: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class RunEnd(_message.Message):
    __slots__ = ("complete", "reason", "monotonic_ns", "ok", "unavailable", "failed", "dropped")
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    complete: bool
    reason: str
    monotonic_ns: int
    ok: int
    unavailable: int
    failed: int
    dropped: int
    def __init__(self, complete: bool = ..., reason: _Optional[str] = ..., monotonic_ns: _Optional[int] = ..., ok: _Optional[int] = ..., unavailable: _Optional[int] = ..., failed: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...
