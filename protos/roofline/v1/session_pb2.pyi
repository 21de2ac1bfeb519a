from roofline.v1 import device_pb2 as _device_pb2
from roofline.v1 import model_pb2 as _model_pb2
from roofline.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionRequest(_message.Message):
    __slots__ = ("hello", "batch", "heartbeat")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    batch: Batch
    heartbeat: Heartbeat
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("hello_ack", "ack", "slow", "close")
    HELLO_ACK_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    SLOW_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    hello_ack: HelloAck
    ack: Ack
    slow: Slow
    close: Close
    def __init__(self, hello_ack: _Optional[_Union[HelloAck, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., slow: _Optional[_Union[Slow, _Mapping]] = ..., close: _Optional[_Union[Close, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_version", "agent_version", "capabilities", "device", "boot_id", "runs", "wants_plan")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    WANTS_PLAN_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    agent_version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    device: _device_pb2.Device
    boot_id: str
    runs: _containers.RepeatedCompositeFieldContainer[RunPosition]
    wants_plan: bool
    def __init__(self, protocol_version: _Optional[int] = ..., agent_version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., device: _Optional[_Union[_device_pb2.Device, _Mapping]] = ..., boot_id: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[RunPosition, _Mapping]]] = ..., wants_plan: bool = ...) -> None: ...

class RunPosition(_message.Message):
    __slots__ = ("run_id", "seq")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class HelloAck(_message.Message):
    __slots__ = ("protocol_version", "collector_version", "limits", "resume", "plan")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    collector_version: str
    limits: Limits
    resume: _containers.RepeatedCompositeFieldContainer[RunPosition]
    plan: Plan
    def __init__(self, protocol_version: _Optional[int] = ..., collector_version: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., resume: _Optional[_Iterable[_Union[RunPosition, _Mapping]]] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("batch_records", "batch_bytes", "window_batches")
    BATCH_RECORDS_FIELD_NUMBER: _ClassVar[int]
    BATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BATCHES_FIELD_NUMBER: _ClassVar[int]
    batch_records: int
    batch_bytes: int
    window_batches: int
    def __init__(self, batch_records: _Optional[int] = ..., batch_bytes: _Optional[int] = ..., window_batches: _Optional[int] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("probes", "models", "threads")
    PROBES_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    probes: _containers.RepeatedScalarFieldContainer[str]
    models: _containers.RepeatedCompositeFieldContainer[_model_pb2.ModelRef]
    threads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, probes: _Optional[_Iterable[str]] = ..., models: _Optional[_Iterable[_Union[_model_pb2.ModelRef, _Mapping]]] = ..., threads: _Optional[_Iterable[int]] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("run_id", "records")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    records: _containers.RepeatedCompositeFieldContainer[_run_pb2.Record]
    def __init__(self, run_id: _Optional[str] = ..., records: _Optional[_Iterable[_Union[_run_pb2.Record, _Mapping]]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("run_id", "done", "planned", "current")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    done: int
    planned: int
    current: str
    def __init__(self, run_id: _Optional[str] = ..., done: _Optional[int] = ..., planned: _Optional[int] = ..., current: _Optional[str] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("run_id", "next_seq", "rejected")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQ_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    next_seq: int
    rejected: _containers.RepeatedCompositeFieldContainer[Rejection]
    def __init__(self, run_id: _Optional[str] = ..., next_seq: _Optional[int] = ..., rejected: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("seq", "reason")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    seq: int
    reason: str
    def __init__(self, seq: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Slow(_message.Message):
    __slots__ = ("retry_after_seconds",)
    RETRY_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    retry_after_seconds: float
    def __init__(self, retry_after_seconds: _Optional[float] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ("reason", "final")
    REASON_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    reason: str
    final: bool
    def __init__(self, reason: _Optional[str] = ..., final: bool = ...) -> None: ...
