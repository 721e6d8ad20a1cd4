from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CommandFrame(_message.Message):
    __slots__ = ("user", "uid", "frame")
    USER_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    user: str
    uid: int
    frame: bytes
    def __init__(self, user: _Optional[str] = ..., uid: _Optional[int] = ..., frame: _Optional[bytes] = ...) -> None: ...

class FromAgent(_message.Message):
    __slots__ = ("hello", "heartbeat", "reports", "peek", "copies", "work_folders")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    WORK_FOLDERS_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    heartbeat: Heartbeat
    reports: Reports
    peek: PeekData
    copies: Copies
    work_folders: WorkFolders
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., reports: _Optional[_Union[Reports, _Mapping]] = ..., peek: _Optional[_Union[PeekData, _Mapping]] = ..., copies: _Optional[_Union[Copies, _Mapping]] = ..., work_folders: _Optional[_Union[WorkFolders, _Mapping]] = ...) -> None: ...

class ToAgent(_message.Message):
    __slots__ = ("welcome", "orders", "acks", "echo", "peek", "copies", "work_folders")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    PEEK_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    WORK_FOLDERS_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    orders: Orders
    acks: Acks
    echo: Echo
    peek: Peek
    copies: Copies
    work_folders: WorkFolders
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., orders: _Optional[_Union[Orders, _Mapping]] = ..., acks: _Optional[_Union[Acks, _Mapping]] = ..., echo: _Optional[_Union[Echo, _Mapping]] = ..., peek: _Optional[_Union[Peek, _Mapping]] = ..., copies: _Optional[_Union[Copies, _Mapping]] = ..., work_folders: _Optional[_Union[WorkFolders, _Mapping]] = ...) -> None: ...

class Copies(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkFolders(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, jobs: _Optional[_Iterable[int]] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("host", "address", "port", "print", "token", "generations")
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    PRINT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    host: str
    address: str
    port: int
    print: str
    token: str
    generations: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, host: _Optional[str] = ..., address: _Optional[str] = ..., port: _Optional[int] = ..., print: _Optional[str] = ..., token: _Optional[str] = ..., generations: _Optional[_Iterable[int]] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("uuid", "index", "model", "memory", "minor", "links", "numa", "bus", "split", "parent", "profile", "slices", "compute_slices")
    UUID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    NUMA_FIELD_NUMBER: _ClassVar[int]
    BUS_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SLICES_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    index: int
    model: str
    memory: int
    minor: int
    links: _containers.RepeatedScalarFieldContainer[str]
    numa: int
    bus: str
    split: bool
    parent: str
    profile: str
    slices: int
    compute_slices: int
    def __init__(self, uuid: _Optional[str] = ..., index: _Optional[int] = ..., model: _Optional[str] = ..., memory: _Optional[int] = ..., minor: _Optional[int] = ..., links: _Optional[_Iterable[str]] = ..., numa: _Optional[int] = ..., bus: _Optional[str] = ..., split: _Optional[bool] = ..., parent: _Optional[str] = ..., profile: _Optional[str] = ..., slices: _Optional[int] = ..., compute_slices: _Optional[int] = ...) -> None: ...

class GpuState(_message.Message):
    __slots__ = ("uuid", "util", "mem_util", "mem_used", "temperature", "power", "ecc", "pstate", "mode", "pcie_sent", "pcie_received", "error", "cause")
    UUID_FIELD_NUMBER: _ClassVar[int]
    UTIL_FIELD_NUMBER: _ClassVar[int]
    MEM_UTIL_FIELD_NUMBER: _ClassVar[int]
    MEM_USED_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    POWER_FIELD_NUMBER: _ClassVar[int]
    ECC_FIELD_NUMBER: _ClassVar[int]
    PSTATE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PCIE_SENT_FIELD_NUMBER: _ClassVar[int]
    PCIE_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    util: int
    mem_util: int
    mem_used: int
    temperature: int
    power: float
    ecc: int
    pstate: int
    mode: str
    pcie_sent: float
    pcie_received: float
    error: str
    cause: str
    def __init__(self, uuid: _Optional[str] = ..., util: _Optional[int] = ..., mem_util: _Optional[int] = ..., mem_used: _Optional[int] = ..., temperature: _Optional[int] = ..., power: _Optional[float] = ..., ecc: _Optional[int] = ..., pstate: _Optional[int] = ..., mode: _Optional[str] = ..., pcie_sent: _Optional[float] = ..., pcie_received: _Optional[float] = ..., error: _Optional[str] = ..., cause: _Optional[str] = ...) -> None: ...

class Mount(_message.Message):
    __slots__ = ("path", "shared", "source")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    path: str
    shared: bool
    source: str
    def __init__(self, path: _Optional[str] = ..., shared: _Optional[bool] = ..., source: _Optional[str] = ...) -> None: ...

class Facts(_message.Message):
    __slots__ = ("ncpus", "max_mem", "max_swap", "max_tmp", "type", "model", "cpu_factor", "boot_id", "gpus", "address", "version", "ncores", "nprocs", "nthreads", "gpu_driver", "mounts", "starter", "copies_port", "resources", "topology", "chunks", "agent", "local")
    class LocalEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NCPUS_FIELD_NUMBER: _ClassVar[int]
    MAX_MEM_FIELD_NUMBER: _ClassVar[int]
    MAX_SWAP_FIELD_NUMBER: _ClassVar[int]
    MAX_TMP_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CPU_FACTOR_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NCORES_FIELD_NUMBER: _ClassVar[int]
    NPROCS_FIELD_NUMBER: _ClassVar[int]
    NTHREADS_FIELD_NUMBER: _ClassVar[int]
    GPU_DRIVER_FIELD_NUMBER: _ClassVar[int]
    MOUNTS_FIELD_NUMBER: _ClassVar[int]
    STARTER_FIELD_NUMBER: _ClassVar[int]
    COPIES_PORT_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LOCAL_FIELD_NUMBER: _ClassVar[int]
    ncpus: int
    max_mem: int
    max_swap: int
    max_tmp: int
    type: str
    model: str
    cpu_factor: float
    boot_id: str
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    address: str
    version: str
    ncores: int
    nprocs: int
    nthreads: int
    gpu_driver: str
    mounts: _containers.RepeatedCompositeFieldContainer[Mount]
    starter: int
    copies_port: int
    resources: _containers.RepeatedScalarFieldContainer[str]
    topology: str
    chunks: bool
    agent: str
    local: _containers.ScalarMap[str, str]
    def __init__(self, ncpus: _Optional[int] = ..., max_mem: _Optional[int] = ..., max_swap: _Optional[int] = ..., max_tmp: _Optional[int] = ..., type: _Optional[str] = ..., model: _Optional[str] = ..., cpu_factor: _Optional[float] = ..., boot_id: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., address: _Optional[str] = ..., version: _Optional[str] = ..., ncores: _Optional[int] = ..., nprocs: _Optional[int] = ..., nthreads: _Optional[int] = ..., gpu_driver: _Optional[str] = ..., mounts: _Optional[_Iterable[_Union[Mount, _Mapping]]] = ..., starter: _Optional[int] = ..., copies_port: _Optional[int] = ..., resources: _Optional[_Iterable[str]] = ..., topology: _Optional[str] = ..., chunks: _Optional[bool] = ..., agent: _Optional[str] = ..., local: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("host", "incarnation", "epoch", "sequence", "facts", "protocol", "unpacks", "gpus_unknown", "parts")
    HOST_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    UNPACKS_FIELD_NUMBER: _ClassVar[int]
    GPUS_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    host: str
    incarnation: str
    epoch: int
    sequence: int
    facts: Facts
    protocol: int
    unpacks: bool
    gpus_unknown: bool
    parts: _containers.RepeatedCompositeFieldContainer[PartStatus]
    def __init__(self, host: _Optional[str] = ..., incarnation: _Optional[str] = ..., epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., facts: _Optional[_Union[Facts, _Mapping]] = ..., protocol: _Optional[int] = ..., unpacks: _Optional[bool] = ..., gpus_unknown: _Optional[bool] = ..., parts: _Optional[_Iterable[_Union[PartStatus, _Mapping]]] = ...) -> None: ...

class PartStatus(_message.Message):
    __slots__ = ("key", "attempt", "uid", "state", "pid")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    key: int
    attempt: int
    uid: str
    state: str
    pid: int
    def __init__(self, key: _Optional[int] = ..., attempt: _Optional[int] = ..., uid: _Optional[str] = ..., state: _Optional[str] = ..., pid: _Optional[int] = ...) -> None: ...

class GpuFault(_message.Message):
    __slots__ = ("uuid", "cause", "error")
    UUID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    cause: str
    error: str
    def __init__(self, uuid: _Optional[str] = ..., cause: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("sent", "load", "usage", "health", "gpus", "gpu_error")
    class LoadEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SENT_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    GPU_ERROR_FIELD_NUMBER: _ClassVar[int]
    sent: float
    load: _containers.ScalarMap[str, float]
    usage: _containers.RepeatedCompositeFieldContainer[Usage]
    health: str
    gpus: _containers.RepeatedCompositeFieldContainer[GpuState]
    gpu_error: str
    def __init__(self, sent: _Optional[float] = ..., load: _Optional[_Mapping[str, float]] = ..., usage: _Optional[_Iterable[_Union[Usage, _Mapping]]] = ..., health: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[GpuState, _Mapping]]] = ..., gpu_error: _Optional[str] = ...) -> None: ...

class TaskUsage(_message.Message):
    __slots__ = ("rank", "pid", "cpu", "rss", "pss", "threads", "processes", "state", "gpu_mem", "gpu_util", "wait_pid", "waits")
    RANK_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    RSS_FIELD_NUMBER: _ClassVar[int]
    PSS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    GPU_MEM_FIELD_NUMBER: _ClassVar[int]
    GPU_UTIL_FIELD_NUMBER: _ClassVar[int]
    WAIT_PID_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    rank: int
    pid: int
    cpu: float
    rss: int
    pss: int
    threads: int
    processes: int
    state: str
    gpu_mem: int
    gpu_util: int
    wait_pid: int
    waits: str
    def __init__(self, rank: _Optional[int] = ..., pid: _Optional[int] = ..., cpu: _Optional[float] = ..., rss: _Optional[int] = ..., pss: _Optional[int] = ..., threads: _Optional[int] = ..., processes: _Optional[int] = ..., state: _Optional[str] = ..., gpu_mem: _Optional[int] = ..., gpu_util: _Optional[int] = ..., wait_pid: _Optional[int] = ..., waits: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("key", "attempt", "at", "cpu", "rss", "pss", "swap", "threads", "max_mem", "max_swap", "avg_mem", "pids", "pgids", "tasks", "cpu_peak", "cpu_peak_after", "gpus")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    RSS_FIELD_NUMBER: _ClassVar[int]
    PSS_FIELD_NUMBER: _ClassVar[int]
    SWAP_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    MAX_MEM_FIELD_NUMBER: _ClassVar[int]
    MAX_SWAP_FIELD_NUMBER: _ClassVar[int]
    AVG_MEM_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    PGIDS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CPU_PEAK_FIELD_NUMBER: _ClassVar[int]
    CPU_PEAK_AFTER_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    key: int
    attempt: int
    at: float
    cpu: float
    rss: int
    pss: int
    swap: int
    threads: int
    max_mem: int
    max_swap: int
    avg_mem: int
    pids: _containers.RepeatedScalarFieldContainer[int]
    pgids: _containers.RepeatedScalarFieldContainer[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskUsage]
    cpu_peak: float
    cpu_peak_after: float
    gpus: _containers.RepeatedCompositeFieldContainer[GpuUse]
    def __init__(self, key: _Optional[int] = ..., attempt: _Optional[int] = ..., at: _Optional[float] = ..., cpu: _Optional[float] = ..., rss: _Optional[int] = ..., pss: _Optional[int] = ..., swap: _Optional[int] = ..., threads: _Optional[int] = ..., max_mem: _Optional[int] = ..., max_swap: _Optional[int] = ..., avg_mem: _Optional[int] = ..., pids: _Optional[_Iterable[int]] = ..., pgids: _Optional[_Iterable[int]] = ..., tasks: _Optional[_Iterable[_Union[TaskUsage, _Mapping]]] = ..., cpu_peak: _Optional[float] = ..., cpu_peak_after: _Optional[float] = ..., gpus: _Optional[_Iterable[_Union[GpuUse, _Mapping]]] = ...) -> None: ...

class GpuUse(_message.Message):
    __slots__ = ("uuid", "index", "util", "mem", "max_mem", "held", "known", "used", "idle", "max_util", "min_util", "mem_used", "max_mem_util", "min_mem_util", "energy", "pcie_sent", "pcie_received")
    UUID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    UTIL_FIELD_NUMBER: _ClassVar[int]
    MEM_FIELD_NUMBER: _ClassVar[int]
    MAX_MEM_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    MAX_UTIL_FIELD_NUMBER: _ClassVar[int]
    MIN_UTIL_FIELD_NUMBER: _ClassVar[int]
    MEM_USED_FIELD_NUMBER: _ClassVar[int]
    MAX_MEM_UTIL_FIELD_NUMBER: _ClassVar[int]
    MIN_MEM_UTIL_FIELD_NUMBER: _ClassVar[int]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    PCIE_SENT_FIELD_NUMBER: _ClassVar[int]
    PCIE_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    index: int
    util: int
    mem: int
    max_mem: int
    held: float
    known: float
    used: float
    idle: float
    max_util: int
    min_util: int
    mem_used: float
    max_mem_util: int
    min_mem_util: int
    energy: float
    pcie_sent: float
    pcie_received: float
    def __init__(self, uuid: _Optional[str] = ..., index: _Optional[int] = ..., util: _Optional[int] = ..., mem: _Optional[int] = ..., max_mem: _Optional[int] = ..., held: _Optional[float] = ..., known: _Optional[float] = ..., used: _Optional[float] = ..., idle: _Optional[float] = ..., max_util: _Optional[int] = ..., min_util: _Optional[int] = ..., mem_used: _Optional[float] = ..., max_mem_util: _Optional[int] = ..., min_mem_util: _Optional[int] = ..., energy: _Optional[float] = ..., pcie_sent: _Optional[float] = ..., pcie_received: _Optional[float] = ...) -> None: ...

class Reports(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[Report]
    def __init__(self, reports: _Optional[_Iterable[_Union[Report, _Mapping]]] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("serial", "key", "attempt", "uid", "prepared", "started", "ended", "gone", "refused", "stopped", "granted", "checkpointed", "task_started", "task_ended", "resized")
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    PREPARED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_FIELD_NUMBER: _ClassVar[int]
    TASK_STARTED_FIELD_NUMBER: _ClassVar[int]
    TASK_ENDED_FIELD_NUMBER: _ClassVar[int]
    RESIZED_FIELD_NUMBER: _ClassVar[int]
    serial: int
    key: int
    attempt: int
    uid: str
    prepared: Prepared
    started: Started
    ended: Ended
    gone: Gone
    refused: PartRefused
    stopped: Stopped
    granted: Granted
    checkpointed: Checkpointed
    task_started: TaskStarted
    task_ended: TaskEnded
    resized: Resized
    def __init__(self, serial: _Optional[int] = ..., key: _Optional[int] = ..., attempt: _Optional[int] = ..., uid: _Optional[str] = ..., prepared: _Optional[_Union[Prepared, _Mapping]] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., gone: _Optional[_Union[Gone, _Mapping]] = ..., refused: _Optional[_Union[PartRefused, _Mapping]] = ..., stopped: _Optional[_Union[Stopped, _Mapping]] = ..., granted: _Optional[_Union[Granted, _Mapping]] = ..., checkpointed: _Optional[_Union[Checkpointed, _Mapping]] = ..., task_started: _Optional[_Union[TaskStarted, _Mapping]] = ..., task_ended: _Optional[_Union[TaskEnded, _Mapping]] = ..., resized: _Optional[_Union[Resized, _Mapping]] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("host", "port", "ports")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    ports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ..., ports: _Optional[_Iterable[int]] = ...) -> None: ...

class Prepared(_message.Message):
    __slots__ = ("attach_address", "endpoint")
    ATTACH_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    attach_address: str
    endpoint: Endpoint
    def __init__(self, attach_address: _Optional[str] = ..., endpoint: _Optional[_Union[Endpoint, _Mapping]] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("pid", "started", "cwd")
    PID_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    pid: int
    started: float
    cwd: str
    def __init__(self, pid: _Optional[int] = ..., started: _Optional[float] = ..., cwd: _Optional[str] = ...) -> None: ...

class TaskEnd(_message.Message):
    __slots__ = ("rank", "pid", "status", "utime", "stime", "maxrss")
    RANK_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    UTIME_FIELD_NUMBER: _ClassVar[int]
    STIME_FIELD_NUMBER: _ClassVar[int]
    MAXRSS_FIELD_NUMBER: _ClassVar[int]
    rank: int
    pid: int
    status: int
    utime: float
    stime: float
    maxrss: int
    def __init__(self, rank: _Optional[int] = ..., pid: _Optional[int] = ..., status: _Optional[int] = ..., utime: _Optional[float] = ..., stime: _Optional[float] = ..., maxrss: _Optional[int] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("status", "at", "started", "utime", "stime", "max_mem", "max_swap", "max_processes", "max_threads", "avg_mem", "tasks", "first_rank", "first_reason", "limit", "lost", "output", "gone", "post", "cpu_peak", "cpu_peak_after", "note", "gpus", "gpu_faults", "cwd")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    UTIME_FIELD_NUMBER: _ClassVar[int]
    STIME_FIELD_NUMBER: _ClassVar[int]
    MAX_MEM_FIELD_NUMBER: _ClassVar[int]
    MAX_SWAP_FIELD_NUMBER: _ClassVar[int]
    MAX_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    MAX_THREADS_FIELD_NUMBER: _ClassVar[int]
    AVG_MEM_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    FIRST_RANK_FIELD_NUMBER: _ClassVar[int]
    FIRST_REASON_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    POST_FIELD_NUMBER: _ClassVar[int]
    CPU_PEAK_FIELD_NUMBER: _ClassVar[int]
    CPU_PEAK_AFTER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    GPU_FAULTS_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    status: int
    at: float
    started: float
    utime: float
    stime: float
    max_mem: int
    max_swap: int
    max_processes: int
    max_threads: int
    avg_mem: int
    tasks: _containers.RepeatedCompositeFieldContainer[TaskEnd]
    first_rank: int
    first_reason: str
    limit: str
    lost: str
    output: str
    gone: bool
    post: int
    cpu_peak: float
    cpu_peak_after: float
    note: str
    gpus: _containers.RepeatedCompositeFieldContainer[GpuUse]
    gpu_faults: _containers.RepeatedCompositeFieldContainer[GpuFault]
    cwd: str
    def __init__(self, status: _Optional[int] = ..., at: _Optional[float] = ..., started: _Optional[float] = ..., utime: _Optional[float] = ..., stime: _Optional[float] = ..., max_mem: _Optional[int] = ..., max_swap: _Optional[int] = ..., max_processes: _Optional[int] = ..., max_threads: _Optional[int] = ..., avg_mem: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[TaskEnd, _Mapping]]] = ..., first_rank: _Optional[int] = ..., first_reason: _Optional[str] = ..., limit: _Optional[str] = ..., lost: _Optional[str] = ..., output: _Optional[str] = ..., gone: _Optional[bool] = ..., post: _Optional[int] = ..., cpu_peak: _Optional[float] = ..., cpu_peak_after: _Optional[float] = ..., note: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[GpuUse, _Mapping]]] = ..., gpu_faults: _Optional[_Iterable[_Union[GpuFault, _Mapping]]] = ..., cwd: _Optional[str] = ...) -> None: ...

class Gone(_message.Message):
    __slots__ = ("post", "gpu_faults")
    POST_FIELD_NUMBER: _ClassVar[int]
    GPU_FAULTS_FIELD_NUMBER: _ClassVar[int]
    post: int
    gpu_faults: _containers.RepeatedCompositeFieldContainer[GpuFault]
    def __init__(self, post: _Optional[int] = ..., gpu_faults: _Optional[_Iterable[_Union[GpuFault, _Mapping]]] = ...) -> None: ...

class PartRefused(_message.Message):
    __slots__ = ("code", "why")
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    code: str
    why: str
    def __init__(self, code: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class Stopped(_message.Message):
    __slots__ = ("stopped",)
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    stopped: bool
    def __init__(self, stopped: _Optional[bool] = ...) -> None: ...

class Granted(_message.Message):
    __slots__ = ("number", "ok", "why")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    number: int
    ok: bool
    why: str
    def __init__(self, number: _Optional[int] = ..., ok: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...

class Checkpointed(_message.Message):
    __slots__ = ("generation", "seconds", "size", "method", "why", "newest", "staged", "holder")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    STAGED_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    generation: int
    seconds: float
    size: int
    method: str
    why: str
    newest: int
    staged: bool
    holder: str
    def __init__(self, generation: _Optional[int] = ..., seconds: _Optional[float] = ..., size: _Optional[int] = ..., method: _Optional[str] = ..., why: _Optional[str] = ..., newest: _Optional[int] = ..., staged: _Optional[bool] = ..., holder: _Optional[str] = ...) -> None: ...

class TaskStarted(_message.Message):
    __slots__ = ("rank", "number", "pid")
    RANK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    rank: int
    number: int
    pid: int
    def __init__(self, rank: _Optional[int] = ..., number: _Optional[int] = ..., pid: _Optional[int] = ...) -> None: ...

class TaskEnded(_message.Message):
    __slots__ = ("rank", "number", "status", "limit")
    RANK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    rank: int
    number: int
    status: int
    limit: str
    def __init__(self, rank: _Optional[int] = ..., number: _Optional[int] = ..., status: _Optional[int] = ..., limit: _Optional[str] = ...) -> None: ...

class Resized(_message.Message):
    __slots__ = ("number", "ok", "why")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    number: int
    ok: bool
    why: str
    def __init__(self, number: _Optional[int] = ..., ok: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("epoch", "incarnation", "heartbeat", "sample", "cluster", "restored", "protocol", "copies_key", "copies_cert", "copies_secret")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    COPIES_KEY_FIELD_NUMBER: _ClassVar[int]
    COPIES_CERT_FIELD_NUMBER: _ClassVar[int]
    COPIES_SECRET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    incarnation: str
    heartbeat: float
    sample: float
    cluster: str
    restored: float
    protocol: int
    copies_key: bytes
    copies_cert: bytes
    copies_secret: bytes
    def __init__(self, epoch: _Optional[int] = ..., incarnation: _Optional[str] = ..., heartbeat: _Optional[float] = ..., sample: _Optional[float] = ..., cluster: _Optional[str] = ..., restored: _Optional[float] = ..., protocol: _Optional[int] = ..., copies_key: _Optional[bytes] = ..., copies_cert: _Optional[bytes] = ..., copies_secret: _Optional[bytes] = ...) -> None: ...

class Orders(_message.Message):
    __slots__ = ("texts", "orders")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[JobText]
    orders: _containers.RepeatedCompositeFieldContainer[Order]
    def __init__(self, texts: _Optional[_Iterable[_Union[JobText, _Mapping]]] = ..., orders: _Optional[_Iterable[_Union[Order, _Mapping]]] = ...) -> None: ...

class JobText(_message.Message):
    __slots__ = ("id", "job", "user", "command", "script", "env", "djob_disabled", "env_vars", "cwd", "home", "shell", "submit_cwd", "input", "output", "output_overwrite", "error", "error_overwrite", "output_dir", "pre_exec", "post_exec", "umask", "label", "rank_files", "login_shell", "queue", "project", "name", "from_host", "launch", "resreq", "cluster", "submitted", "array_end", "array_step", "limits", "direct_output", "leased", "checkpoint_folder", "checkpoint_period", "checkpoint_method", "checkpoint_initial", "nice", "job_starter", "description", "gpu_mode", "gpus_per_task", "enforce_gpu", "enforce_cpu", "gpu_blocks", "gpu_mps", "checkpoint_moves", "shared_dirs", "checkpoint_stage", "checkpoint_to_hosts", "checkpoint_keep", "app", "group", "admins", "terminate_interval", "requeue_exit_values", "enforce_memory", "run_warning", "post_mail", "report_mail", "notify_end", "notify_start", "queue_pre_exec", "queue_post_exec", "secrets", "software", "requested_mem", "roles", "framework", "nproc", "launcher_start", "clean", "notify", "input_data", "copies", "tee", "interactive", "resizable", "min_slots", "max_slots", "checkpoint_of", "warn_action", "warn_before", "host_pre_exec", "host_post_exec", "pre_post_exec_user", "pre_timeout", "post_timeout", "cwd_hours", "include_post", "deadline", "job_controls", "effective_resreq")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnvVarsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class SecretsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    DJOB_DISABLED_FIELD_NUMBER: _ClassVar[int]
    ENV_VARS_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_CWD_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_DIR_FIELD_NUMBER: _ClassVar[int]
    PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    UMASK_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    RANK_FILES_FIELD_NUMBER: _ClassVar[int]
    LOGIN_SHELL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FROM_HOST_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    RESREQ_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    ARRAY_END_FIELD_NUMBER: _ClassVar[int]
    ARRAY_STEP_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DIRECT_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FOLDER_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PERIOD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_METHOD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_INITIAL_FIELD_NUMBER: _ClassVar[int]
    NICE_FIELD_NUMBER: _ClassVar[int]
    JOB_STARTER_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    GPU_MODE_FIELD_NUMBER: _ClassVar[int]
    GPUS_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    ENFORCE_GPU_FIELD_NUMBER: _ClassVar[int]
    ENFORCE_CPU_FIELD_NUMBER: _ClassVar[int]
    GPU_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    GPU_MPS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_MOVES_FIELD_NUMBER: _ClassVar[int]
    SHARED_DIRS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_STAGE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_TO_HOSTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_KEEP_FIELD_NUMBER: _ClassVar[int]
    APP_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ADMINS_FIELD_NUMBER: _ClassVar[int]
    TERMINATE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_EXIT_VALUES_FIELD_NUMBER: _ClassVar[int]
    ENFORCE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    RUN_WARNING_FIELD_NUMBER: _ClassVar[int]
    POST_MAIL_FIELD_NUMBER: _ClassVar[int]
    REPORT_MAIL_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_END_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_START_FIELD_NUMBER: _ClassVar[int]
    QUEUE_PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_MEM_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    NPROC_FIELD_NUMBER: _ClassVar[int]
    LAUNCHER_START_FIELD_NUMBER: _ClassVar[int]
    CLEAN_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_FIELD_NUMBER: _ClassVar[int]
    INPUT_DATA_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    TEE_FIELD_NUMBER: _ClassVar[int]
    INTERACTIVE_FIELD_NUMBER: _ClassVar[int]
    RESIZABLE_FIELD_NUMBER: _ClassVar[int]
    MIN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    MAX_SLOTS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_OF_FIELD_NUMBER: _ClassVar[int]
    WARN_ACTION_FIELD_NUMBER: _ClassVar[int]
    WARN_BEFORE_FIELD_NUMBER: _ClassVar[int]
    HOST_PRE_EXEC_FIELD_NUMBER: _ClassVar[int]
    HOST_POST_EXEC_FIELD_NUMBER: _ClassVar[int]
    PRE_POST_EXEC_USER_FIELD_NUMBER: _ClassVar[int]
    PRE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    POST_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CWD_HOURS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_POST_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    JOB_CONTROLS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_RESREQ_FIELD_NUMBER: _ClassVar[int]
    id: int
    job: int
    user: str
    command: str
    script: str
    env: _containers.ScalarMap[str, str]
    djob_disabled: bool
    env_vars: _containers.ScalarMap[str, str]
    cwd: str
    home: str
    shell: str
    submit_cwd: str
    input: str
    output: str
    output_overwrite: bool
    error: str
    error_overwrite: bool
    output_dir: str
    pre_exec: str
    post_exec: str
    umask: int
    label: bool
    rank_files: str
    login_shell: str
    queue: str
    project: str
    name: str
    from_host: str
    launch: str
    resreq: str
    cluster: str
    submitted: float
    array_end: int
    array_step: int
    limits: Limits
    direct_output: bool
    leased: bool
    checkpoint_folder: str
    checkpoint_period: int
    checkpoint_method: str
    checkpoint_initial: int
    nice: int
    job_starter: str
    description: str
    gpu_mode: str
    gpus_per_task: int
    enforce_gpu: bool
    enforce_cpu: bool
    gpu_blocks: bool
    gpu_mps: str
    checkpoint_moves: bool
    shared_dirs: _containers.RepeatedScalarFieldContainer[str]
    checkpoint_stage: str
    checkpoint_to_hosts: bool
    checkpoint_keep: int
    app: str
    group: str
    admins: _containers.RepeatedScalarFieldContainer[str]
    terminate_interval: int
    requeue_exit_values: str
    enforce_memory: bool
    run_warning: int
    post_mail: str
    report_mail: str
    notify_end: bool
    notify_start: bool
    queue_pre_exec: str
    queue_post_exec: str
    secrets: _containers.ScalarMap[str, str]
    software: _containers.RepeatedCompositeFieldContainer[Software]
    requested_mem: float
    roles: _containers.RepeatedCompositeFieldContainer[Role]
    framework: str
    nproc: int
    launcher_start: str
    clean: str
    notify: str
    input_data: bytes
    copies: _containers.RepeatedScalarFieldContainer[str]
    tee: bool
    interactive: str
    resizable: bool
    min_slots: int
    max_slots: int
    checkpoint_of: str
    warn_action: str
    warn_before: int
    host_pre_exec: _containers.RepeatedScalarFieldContainer[str]
    host_post_exec: _containers.RepeatedScalarFieldContainer[str]
    pre_post_exec_user: str
    pre_timeout: int
    post_timeout: int
    cwd_hours: int
    include_post: bool
    deadline: float
    job_controls: _containers.RepeatedCompositeFieldContainer[Control]
    effective_resreq: str
    def __init__(self, id: _Optional[int] = ..., job: _Optional[int] = ..., user: _Optional[str] = ..., command: _Optional[str] = ..., script: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., djob_disabled: _Optional[bool] = ..., env_vars: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., home: _Optional[str] = ..., shell: _Optional[str] = ..., submit_cwd: _Optional[str] = ..., input: _Optional[str] = ..., output: _Optional[str] = ..., output_overwrite: _Optional[bool] = ..., error: _Optional[str] = ..., error_overwrite: _Optional[bool] = ..., output_dir: _Optional[str] = ..., pre_exec: _Optional[str] = ..., post_exec: _Optional[str] = ..., umask: _Optional[int] = ..., label: _Optional[bool] = ..., rank_files: _Optional[str] = ..., login_shell: _Optional[str] = ..., queue: _Optional[str] = ..., project: _Optional[str] = ..., name: _Optional[str] = ..., from_host: _Optional[str] = ..., launch: _Optional[str] = ..., resreq: _Optional[str] = ..., cluster: _Optional[str] = ..., submitted: _Optional[float] = ..., array_end: _Optional[int] = ..., array_step: _Optional[int] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., direct_output: _Optional[bool] = ..., leased: _Optional[bool] = ..., checkpoint_folder: _Optional[str] = ..., checkpoint_period: _Optional[int] = ..., checkpoint_method: _Optional[str] = ..., checkpoint_initial: _Optional[int] = ..., nice: _Optional[int] = ..., job_starter: _Optional[str] = ..., description: _Optional[str] = ..., gpu_mode: _Optional[str] = ..., gpus_per_task: _Optional[int] = ..., enforce_gpu: _Optional[bool] = ..., enforce_cpu: _Optional[bool] = ..., gpu_blocks: _Optional[bool] = ..., gpu_mps: _Optional[str] = ..., checkpoint_moves: _Optional[bool] = ..., shared_dirs: _Optional[_Iterable[str]] = ..., checkpoint_stage: _Optional[str] = ..., checkpoint_to_hosts: _Optional[bool] = ..., checkpoint_keep: _Optional[int] = ..., app: _Optional[str] = ..., group: _Optional[str] = ..., admins: _Optional[_Iterable[str]] = ..., terminate_interval: _Optional[int] = ..., requeue_exit_values: _Optional[str] = ..., enforce_memory: _Optional[bool] = ..., run_warning: _Optional[int] = ..., post_mail: _Optional[str] = ..., report_mail: _Optional[str] = ..., notify_end: _Optional[bool] = ..., notify_start: _Optional[bool] = ..., queue_pre_exec: _Optional[str] = ..., queue_post_exec: _Optional[str] = ..., secrets: _Optional[_Mapping[str, str]] = ..., software: _Optional[_Iterable[_Union[Software, _Mapping]]] = ..., requested_mem: _Optional[float] = ..., roles: _Optional[_Iterable[_Union[Role, _Mapping]]] = ..., framework: _Optional[str] = ..., nproc: _Optional[int] = ..., launcher_start: _Optional[str] = ..., clean: _Optional[str] = ..., notify: _Optional[str] = ..., input_data: _Optional[bytes] = ..., copies: _Optional[_Iterable[str]] = ..., tee: _Optional[bool] = ..., interactive: _Optional[str] = ..., resizable: _Optional[bool] = ..., min_slots: _Optional[int] = ..., max_slots: _Optional[int] = ..., checkpoint_of: _Optional[str] = ..., warn_action: _Optional[str] = ..., warn_before: _Optional[int] = ..., host_pre_exec: _Optional[_Iterable[str]] = ..., host_post_exec: _Optional[_Iterable[str]] = ..., pre_post_exec_user: _Optional[str] = ..., pre_timeout: _Optional[int] = ..., post_timeout: _Optional[int] = ..., cwd_hours: _Optional[int] = ..., include_post: _Optional[bool] = ..., deadline: _Optional[float] = ..., job_controls: _Optional[_Iterable[_Union[Control, _Mapping]]] = ..., effective_resreq: _Optional[str] = ...) -> None: ...

class Control(_message.Message):
    __slots__ = ("action", "what")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    action: str
    what: str
    def __init__(self, action: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...

class Role(_message.Message):
    __slots__ = ("name", "command", "env", "cwd", "limits", "gpus", "slots", "kind", "least", "count", "scratch", "software", "late")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SCRATCH_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    command: str
    env: _containers.ScalarMap[str, str]
    cwd: str
    limits: Limits
    gpus: int
    slots: int
    kind: str
    least: int
    count: int
    scratch: bool
    software: _containers.RepeatedCompositeFieldContainer[Software]
    late: bool
    def __init__(self, name: _Optional[str] = ..., command: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., gpus: _Optional[int] = ..., slots: _Optional[int] = ..., kind: _Optional[str] = ..., least: _Optional[int] = ..., count: _Optional[int] = ..., scratch: _Optional[bool] = ..., software: _Optional[_Iterable[_Union[Software, _Mapping]]] = ..., late: _Optional[bool] = ...) -> None: ...

class Software(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("run", "cpu", "mem", "swap", "file", "data", "stack", "core", "processes", "threads")
    RUN_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEM_FIELD_NUMBER: _ClassVar[int]
    SWAP_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    CORE_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    run: int
    cpu: int
    mem: int
    swap: int
    file: int
    data: int
    stack: int
    core: int
    processes: int
    threads: int
    def __init__(self, run: _Optional[int] = ..., cpu: _Optional[int] = ..., mem: _Optional[int] = ..., swap: _Optional[int] = ..., file: _Optional[int] = ..., data: _Optional[int] = ..., stack: _Optional[int] = ..., core: _Optional[int] = ..., processes: _Optional[int] = ..., threads: _Optional[int] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("key", "attempt", "uid", "start", "release", "kill", "signal", "stop", "start_task", "end_task", "finish", "hosts", "limits", "amend", "copy_to", "copy_generation", "packed")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    KILL_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    START_TASK_FIELD_NUMBER: _ClassVar[int]
    END_TASK_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    AMEND_FIELD_NUMBER: _ClassVar[int]
    COPY_TO_FIELD_NUMBER: _ClassVar[int]
    COPY_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    key: int
    attempt: int
    uid: str
    start: Start
    release: Release
    kill: Kill
    signal: Signal
    stop: Stop
    start_task: StartTask
    end_task: EndTask
    finish: Finish
    hosts: Hosts
    limits: Limits
    amend: Amend
    copy_to: Holder
    copy_generation: int
    packed: bytes
    def __init__(self, key: _Optional[int] = ..., attempt: _Optional[int] = ..., uid: _Optional[str] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., kill: _Optional[_Union[Kill, _Mapping]] = ..., signal: _Optional[_Union[Signal, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., start_task: _Optional[_Union[StartTask, _Mapping]] = ..., end_task: _Optional[_Union[EndTask, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., hosts: _Optional[_Union[Hosts, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., amend: _Optional[_Union[Amend, _Mapping]] = ..., copy_to: _Optional[_Union[Holder, _Mapping]] = ..., copy_generation: _Optional[int] = ..., packed: _Optional[bytes] = ...) -> None: ...

class RoleSlots(_message.Message):
    __slots__ = ("role", "first", "count")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    role: int
    first: int
    count: int
    def __init__(self, role: _Optional[int] = ..., first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class HostSlots(_message.Message):
    __slots__ = ("host", "slots", "gpus", "address", "roles", "binds", "node_index", "reserved_mem")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    BINDS_FIELD_NUMBER: _ClassVar[int]
    NODE_INDEX_FIELD_NUMBER: _ClassVar[int]
    RESERVED_MEM_FIELD_NUMBER: _ClassVar[int]
    host: str
    slots: int
    gpus: _containers.RepeatedScalarFieldContainer[str]
    address: str
    roles: _containers.RepeatedCompositeFieldContainer[RoleSlots]
    binds: _containers.RepeatedCompositeFieldContainer[Bind]
    node_index: int
    reserved_mem: float
    def __init__(self, host: _Optional[str] = ..., slots: _Optional[int] = ..., gpus: _Optional[_Iterable[str]] = ..., address: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[RoleSlots, _Mapping]]] = ..., binds: _Optional[_Iterable[_Union[Bind, _Mapping]]] = ..., node_index: _Optional[int] = ..., reserved_mem: _Optional[float] = ...) -> None: ...

class Bind(_message.Message):
    __slots__ = ("cpus", "nodes", "only")
    CPUS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    cpus: _containers.RepeatedScalarFieldContainer[int]
    nodes: _containers.RepeatedScalarFieldContainer[int]
    only: bool
    def __init__(self, cpus: _Optional[_Iterable[int]] = ..., nodes: _Optional[_Iterable[int]] = ..., only: _Optional[bool] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("sequence", "text", "two_phase", "hosts", "place", "expires", "lease", "key_pem", "cert_pem", "restart", "restart_count", "name", "token", "go_back", "holders", "chunk")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TWO_PHASE_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    KEY_PEM_FIELD_NUMBER: _ClassVar[int]
    CERT_PEM_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    RESTART_COUNT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    GO_BACK_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    text: int
    two_phase: bool
    hosts: _containers.RepeatedCompositeFieldContainer[HostSlots]
    place: int
    expires: float
    lease: float
    key_pem: bytes
    cert_pem: bytes
    restart: int
    restart_count: int
    name: str
    token: str
    go_back: bool
    holders: _containers.RepeatedCompositeFieldContainer[Holder]
    chunk: str
    def __init__(self, sequence: _Optional[int] = ..., text: _Optional[int] = ..., two_phase: _Optional[bool] = ..., hosts: _Optional[_Iterable[_Union[HostSlots, _Mapping]]] = ..., place: _Optional[int] = ..., expires: _Optional[float] = ..., lease: _Optional[float] = ..., key_pem: _Optional[bytes] = ..., cert_pem: _Optional[bytes] = ..., restart: _Optional[int] = ..., restart_count: _Optional[int] = ..., name: _Optional[str] = ..., token: _Optional[str] = ..., go_back: _Optional[bool] = ..., holders: _Optional[_Iterable[_Union[Holder, _Mapping]]] = ..., chunk: _Optional[str] = ...) -> None: ...

class Amend(_message.Message):
    __slots__ = ("output", "output_overwrite", "error", "error_overwrite", "notify_end", "report_mail", "checkpoint_period")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    NOTIFY_END_FIELD_NUMBER: _ClassVar[int]
    REPORT_MAIL_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_PERIOD_FIELD_NUMBER: _ClassVar[int]
    output: str
    output_overwrite: bool
    error: str
    error_overwrite: bool
    notify_end: bool
    report_mail: str
    checkpoint_period: int
    def __init__(self, output: _Optional[str] = ..., output_overwrite: _Optional[bool] = ..., error: _Optional[str] = ..., error_overwrite: _Optional[bool] = ..., notify_end: _Optional[bool] = ..., report_mail: _Optional[str] = ..., checkpoint_period: _Optional[int] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("root", "ports")
    ROOT_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    root: Endpoint
    ports: _containers.RepeatedCompositeFieldContainer[Ports]
    def __init__(self, root: _Optional[_Union[Endpoint, _Mapping]] = ..., ports: _Optional[_Iterable[_Union[Ports, _Mapping]]] = ...) -> None: ...

class Ports(_message.Message):
    __slots__ = ("ports",)
    PORTS_FIELD_NUMBER: _ClassVar[int]
    ports: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ports: _Optional[_Iterable[int]] = ...) -> None: ...

class Kill(_message.Message):
    __slots__ = ("leaves", "grace", "why", "status")
    LEAVES_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    leaves: bool
    grace: float
    why: str
    status: int
    def __init__(self, leaves: _Optional[bool] = ..., grace: _Optional[float] = ..., why: _Optional[str] = ..., status: _Optional[int] = ...) -> None: ...

class Hosts(_message.Message):
    __slots__ = ("hosts", "number", "grow", "changed", "command")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GROW_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[HostSlots]
    number: int
    grow: bool
    changed: _containers.RepeatedCompositeFieldContainer[HostSlots]
    command: str
    def __init__(self, hosts: _Optional[_Iterable[_Union[HostSlots, _Mapping]]] = ..., number: _Optional[int] = ..., grow: _Optional[bool] = ..., changed: _Optional[_Iterable[_Union[HostSlots, _Mapping]]] = ..., command: _Optional[str] = ...) -> None: ...

class Signal(_message.Message):
    __slots__ = ("number", "kind", "signal", "reason", "kill_after", "period", "notice", "unless_begun")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KILL_AFTER_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    UNLESS_BEGUN_FIELD_NUMBER: _ClassVar[int]
    number: int
    kind: str
    signal: int
    reason: str
    kill_after: bool
    period: int
    notice: int
    unless_begun: bool
    def __init__(self, number: _Optional[int] = ..., kind: _Optional[str] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ..., kill_after: _Optional[bool] = ..., period: _Optional[int] = ..., notice: _Optional[int] = ..., unless_begun: _Optional[bool] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("stopped",)
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    stopped: bool
    def __init__(self, stopped: _Optional[bool] = ...) -> None: ...

class StartTask(_message.Message):
    __slots__ = ("rank", "number", "delay")
    RANK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    rank: int
    number: int
    delay: float
    def __init__(self, rank: _Optional[int] = ..., number: _Optional[int] = ..., delay: _Optional[float] = ...) -> None: ...

class EndTask(_message.Message):
    __slots__ = ("rank", "number")
    RANK_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    rank: int
    number: int
    def __init__(self, rank: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("status", "rank", "why", "leave")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    status: int
    rank: int
    why: str
    leave: bool
    def __init__(self, status: _Optional[int] = ..., rank: _Optional[int] = ..., why: _Optional[str] = ..., leave: _Optional[bool] = ...) -> None: ...

class Acks(_message.Message):
    __slots__ = ("serial", "ended")
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    serial: int
    ended: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, serial: _Optional[int] = ..., ended: _Optional[_Iterable[str]] = ...) -> None: ...

class Echo(_message.Message):
    __slots__ = ("sent", "extended", "lease")
    SENT_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    sent: float
    extended: float
    lease: float
    def __init__(self, sent: _Optional[float] = ..., extended: _Optional[float] = ..., lease: _Optional[float] = ...) -> None: ...

class Peek(_message.Message):
    __slots__ = ("id", "key", "uid", "user", "path", "offset", "limit", "stderr")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    id: int
    key: int
    uid: str
    user: str
    path: str
    offset: int
    limit: int
    stderr: bool
    def __init__(self, id: _Optional[int] = ..., key: _Optional[int] = ..., uid: _Optional[str] = ..., user: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., stderr: _Optional[bool] = ...) -> None: ...

class PeekData(_message.Message):
    __slots__ = ("id", "data", "size", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: int
    data: bytes
    size: int
    error: str
    def __init__(self, id: _Optional[int] = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
