from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_OK: _ClassVar[Outcome]
    OUTCOME_UNAVAILABLE: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]

class Grade(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GRADE_UNSPECIFIED: _ClassVar[Grade]
    GRADE_CLEAN: _ClassVar[Grade]
    GRADE_NOISY: _ClassVar[Grade]
    GRADE_THROTTLED: _ClassVar[Grade]
    GRADE_LIMITED: _ClassVar[Grade]
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_OK: Outcome
OUTCOME_UNAVAILABLE: Outcome
OUTCOME_FAILED: Outcome
GRADE_UNSPECIFIED: Grade
GRADE_CLEAN: Grade
GRADE_NOISY: Grade
GRADE_THROTTLED: Grade
GRADE_LIMITED: Grade

class Measurement(_message.Message):
    __slots__ = ("probe", "subject", "quantity", "element_type", "threads", "cpus", "backend", "backend_version", "isa", "compiler", "parameters", "outcome", "reason", "grade", "grade_reasons", "statistics", "repetitions", "work", "before", "after", "started_monotonic_ns", "elapsed_seconds", "cpu_share", "involuntary_switches", "network")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROBE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    BACKEND_VERSION_FIELD_NUMBER: _ClassVar[int]
    ISA_FIELD_NUMBER: _ClassVar[int]
    COMPILER_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRADE_FIELD_NUMBER: _ClassVar[int]
    GRADE_REASONS_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    REPETITIONS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    STARTED_MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CPU_SHARE_FIELD_NUMBER: _ClassVar[int]
    INVOLUNTARY_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    probe: str
    subject: str
    quantity: str
    element_type: str
    threads: int
    cpus: _containers.RepeatedScalarFieldContainer[int]
    backend: str
    backend_version: str
    isa: str
    compiler: str
    parameters: _containers.ScalarMap[str, str]
    outcome: Outcome
    reason: str
    grade: Grade
    grade_reasons: _containers.RepeatedScalarFieldContainer[str]
    statistics: Statistics
    repetitions: _containers.RepeatedScalarFieldContainer[float]
    work: Work
    before: Conditions
    after: Conditions
    started_monotonic_ns: int
    elapsed_seconds: float
    cpu_share: float
    involuntary_switches: int
    network: NetworkDetail
    def __init__(self, probe: _Optional[str] = ..., subject: _Optional[str] = ..., quantity: _Optional[str] = ..., element_type: _Optional[str] = ..., threads: _Optional[int] = ..., cpus: _Optional[_Iterable[int]] = ..., backend: _Optional[str] = ..., backend_version: _Optional[str] = ..., isa: _Optional[str] = ..., compiler: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., reason: _Optional[str] = ..., grade: _Optional[_Union[Grade, str]] = ..., grade_reasons: _Optional[_Iterable[str]] = ..., statistics: _Optional[_Union[Statistics, _Mapping]] = ..., repetitions: _Optional[_Iterable[float]] = ..., work: _Optional[_Union[Work, _Mapping]] = ..., before: _Optional[_Union[Conditions, _Mapping]] = ..., after: _Optional[_Union[Conditions, _Mapping]] = ..., started_monotonic_ns: _Optional[int] = ..., elapsed_seconds: _Optional[float] = ..., cpu_share: _Optional[float] = ..., involuntary_switches: _Optional[int] = ..., network: _Optional[_Union[NetworkDetail, _Mapping]] = ...) -> None: ...

class Statistics(_message.Message):
    __slots__ = ("n", "min", "q10", "median", "q90", "max", "mean", "mad", "ci_low", "ci_high")
    N_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    Q10_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_FIELD_NUMBER: _ClassVar[int]
    Q90_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MAD_FIELD_NUMBER: _ClassVar[int]
    CI_LOW_FIELD_NUMBER: _ClassVar[int]
    CI_HIGH_FIELD_NUMBER: _ClassVar[int]
    n: int
    min: float
    q10: float
    median: float
    q90: float
    max: float
    mean: float
    mad: float
    ci_low: float
    ci_high: float
    def __init__(self, n: _Optional[int] = ..., min: _Optional[float] = ..., q10: _Optional[float] = ..., median: _Optional[float] = ..., q90: _Optional[float] = ..., max: _Optional[float] = ..., mean: _Optional[float] = ..., mad: _Optional[float] = ..., ci_low: _Optional[float] = ..., ci_high: _Optional[float] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("stream_bytes", "bus_bytes", "flops", "working_set_bytes")
    STREAM_BYTES_FIELD_NUMBER: _ClassVar[int]
    BUS_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOPS_FIELD_NUMBER: _ClassVar[int]
    WORKING_SET_BYTES_FIELD_NUMBER: _ClassVar[int]
    stream_bytes: float
    bus_bytes: float
    flops: float
    working_set_bytes: int
    def __init__(self, stream_bytes: _Optional[float] = ..., bus_bytes: _Optional[float] = ..., flops: _Optional[float] = ..., working_set_bytes: _Optional[int] = ...) -> None: ...

class Conditions(_message.Message):
    __slots__ = ("monotonic_ns", "frequency_hz", "governor", "temperature_celsius", "throttled_bits", "load_1m", "steal_ticks", "busy_ticks", "total_ticks", "memory_available_bytes", "pressure_cpu_some_avg10", "pressure_memory_some_avg10", "cgroup_cpus", "cgroup_throttled_us", "cgroup_memory_bytes", "clock_hz")
    class FrequencyHzEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: float
        def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
    class TemperatureCelsiusEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    MONOTONIC_NS_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_HZ_FIELD_NUMBER: _ClassVar[int]
    GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_BITS_FIELD_NUMBER: _ClassVar[int]
    LOAD_1M_FIELD_NUMBER: _ClassVar[int]
    STEAL_TICKS_FIELD_NUMBER: _ClassVar[int]
    BUSY_TICKS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TICKS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_AVAILABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_CPU_SOME_AVG10_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_MEMORY_SOME_AVG10_FIELD_NUMBER: _ClassVar[int]
    CGROUP_CPUS_FIELD_NUMBER: _ClassVar[int]
    CGROUP_THROTTLED_US_FIELD_NUMBER: _ClassVar[int]
    CGROUP_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CLOCK_HZ_FIELD_NUMBER: _ClassVar[int]
    monotonic_ns: int
    frequency_hz: _containers.ScalarMap[int, float]
    governor: str
    temperature_celsius: _containers.ScalarMap[str, float]
    throttled_bits: int
    load_1m: float
    steal_ticks: int
    busy_ticks: int
    total_ticks: int
    memory_available_bytes: int
    pressure_cpu_some_avg10: float
    pressure_memory_some_avg10: float
    cgroup_cpus: float
    cgroup_throttled_us: int
    cgroup_memory_bytes: int
    clock_hz: float
    def __init__(self, monotonic_ns: _Optional[int] = ..., frequency_hz: _Optional[_Mapping[int, float]] = ..., governor: _Optional[str] = ..., temperature_celsius: _Optional[_Mapping[str, float]] = ..., throttled_bits: _Optional[int] = ..., load_1m: _Optional[float] = ..., steal_ticks: _Optional[int] = ..., busy_ticks: _Optional[int] = ..., total_ticks: _Optional[int] = ..., memory_available_bytes: _Optional[int] = ..., pressure_cpu_some_avg10: _Optional[float] = ..., pressure_memory_some_avg10: _Optional[float] = ..., cgroup_cpus: _Optional[float] = ..., cgroup_throttled_us: _Optional[int] = ..., cgroup_memory_bytes: _Optional[int] = ..., clock_hz: _Optional[float] = ...) -> None: ...

class NetworkDetail(_message.Message):
    __slots__ = ("model_name", "model_sha256", "executed_sha256", "provider", "optimization", "nodes", "unjoined_seconds", "profiled_seconds")
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_SHA256_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_SHA256_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    UNJOINED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PROFILED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    model_name: str
    model_sha256: str
    executed_sha256: str
    provider: str
    optimization: str
    nodes: _containers.RepeatedCompositeFieldContainer[NodeTime]
    unjoined_seconds: float
    profiled_seconds: float
    def __init__(self, model_name: _Optional[str] = ..., model_sha256: _Optional[str] = ..., executed_sha256: _Optional[str] = ..., provider: _Optional[str] = ..., optimization: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[NodeTime, _Mapping]]] = ..., unjoined_seconds: _Optional[float] = ..., profiled_seconds: _Optional[float] = ...) -> None: ...

class NodeTime(_message.Message):
    __slots__ = ("index", "name", "op_type", "seconds")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    index: int
    name: str
    op_type: str
    seconds: Statistics
    def __init__(self, index: _Optional[int] = ..., name: _Optional[str] = ..., op_type: _Optional[str] = ..., seconds: _Optional[_Union[Statistics, _Mapping]] = ...) -> None: ...
