from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Device(_message.Message):
    __slots__ = ("fingerprint", "hostname", "model", "soc", "architecture", "os", "kernel", "memory_bytes", "page_bytes", "clusters", "caches", "isa_features", "virtualization", "container", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SOC_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    CACHES_FIELD_NUMBER: _ClassVar[int]
    ISA_FEATURES_FIELD_NUMBER: _ClassVar[int]
    VIRTUALIZATION_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    fingerprint: str
    hostname: str
    model: str
    soc: str
    architecture: str
    os: str
    kernel: str
    memory_bytes: int
    page_bytes: int
    clusters: _containers.RepeatedCompositeFieldContainer[Cluster]
    caches: _containers.RepeatedCompositeFieldContainer[Cache]
    isa_features: _containers.RepeatedScalarFieldContainer[str]
    virtualization: str
    container: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, fingerprint: _Optional[str] = ..., hostname: _Optional[str] = ..., model: _Optional[str] = ..., soc: _Optional[str] = ..., architecture: _Optional[str] = ..., os: _Optional[str] = ..., kernel: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., page_bytes: _Optional[int] = ..., clusters: _Optional[_Iterable[_Union[Cluster, _Mapping]]] = ..., caches: _Optional[_Iterable[_Union[Cache, _Mapping]]] = ..., isa_features: _Optional[_Iterable[str]] = ..., virtualization: _Optional[str] = ..., container: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Cluster(_message.Message):
    __slots__ = ("core", "cpus", "max_hz")
    CORE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MAX_HZ_FIELD_NUMBER: _ClassVar[int]
    core: str
    cpus: _containers.RepeatedScalarFieldContainer[int]
    max_hz: float
    def __init__(self, core: _Optional[str] = ..., cpus: _Optional[_Iterable[int]] = ..., max_hz: _Optional[float] = ...) -> None: ...

class Cache(_message.Message):
    __slots__ = ("level", "kind", "size_bytes", "line_bytes", "shared_cpus", "provenance")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHARED_CPUS_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    level: int
    kind: str
    size_bytes: int
    line_bytes: int
    shared_cpus: _containers.RepeatedScalarFieldContainer[int]
    provenance: str
    def __init__(self, level: _Optional[int] = ..., kind: _Optional[str] = ..., size_bytes: _Optional[int] = ..., line_bytes: _Optional[int] = ..., shared_cpus: _Optional[_Iterable[int]] = ..., provenance: _Optional[str] = ...) -> None: ...
