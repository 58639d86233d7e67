"""Collectives that generated code calls: MPI's own functions, by their addresses, without Python in between.

In: an operator's call on a group whose channel is MPI's. Out: a `Collective`, which a lowering writes into a graph's loops
(`Started`, `Awaited`): its address is a description that `native_calls.c` reads. What always holds: native calls are those
that the operators make, in the same order on the same communicator, so that a rank whose call of a graph does not fit runs
operators beside others that run native code.
"""

from __future__ import annotations

import atexit
import ctypes
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ..core import dtype as dtypes
from ..ops.lowering.loops import Engine, Routine
from ..runtime.build import CompileFailed, NoCompiler, build
from .groups import state
from .process_group import ProcessGroup
from .reduce_op import ReduceOp, mpi_name
from .under_way import finish_pending
from .work import DistBackendError

LATE, INTERRUPTED = -2, -3
KINDS = {
    "all_reduce": 0,
    "all_gather_into_tensor": 1,
    "reduce_scatter_tensor": 2,
    "broadcast": 3,
    "all_to_all_single": 4,
}
ELEMENTS = {dtypes.float32: (0, "FLOAT"), dtypes.float64: (1, "DOUBLE"), dtypes.int32: (2, "INT"), dtypes.int64: (3, "LONG")}  # fmt: skip
BYTES = (4, "BYTE")
MOST = 2**31 - 1  # elements that MPI's calls can be told of
FUNCTIONS = (
    "MPI_Iallreduce",
    "MPI_Iallgatherv",
    "MPI_Ireduce_scatter_block",
    "MPI_Ibcast",
    "MPI_Ialltoallv",
    "MPI_Test",
)
PYTHON = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release", "PyErr_Fetch")


class _Group(ctypes.Structure):
    _fields_ = [
        ("handle", ctypes.c_long), ("rank", ctypes.c_long), ("size", ctypes.c_long), ("timeout", ctypes.c_double),
        ("count", ctypes.c_void_p), ("page", ctypes.c_void_p), ("room", ctypes.c_long), ("name", ctypes.c_char_p),
    ]  # fmt: skip


class _Call(ctypes.Structure):
    _fields_ = [
        ("group", ctypes.POINTER(_Group)),
        *[(n, ctypes.c_long) for n in ("kind", "element", "datatype", "op", "divisor", "root", "elements", "nbytes")],
        *[(n, ctypes.POINTER(ctypes.c_int)) for n in ("sent", "sent_at", "received", "received_at")],
        ("name", ctypes.c_char_p),
    ]


class _Record(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p), ("number", ctypes.c_long), ("nbytes", ctypes.c_long), ("began", ctypes.c_double),
        ("ended", ctypes.c_double),
    ]  # fmt: skip


@dataclass
class Record:
    """A call that native code made, as those who measure see it."""

    name: str
    number: int
    nbytes: int
    started: float
    ended: float


class Collective(Routine):
    """One collective of a graph: what it is told to MPI with, and the group it is of."""

    def __init__(
        self, engine: Calls, group: ProcessGroup, name: str, element: tuple[int, str], elements: int, nbytes: int, *,
        op: ReduceOp | None = None, root: int = 0, sent: list[int] | None = None, received: list[int] | None = None,
    ):  # fmt: skip
        self.engine, self.group, self.name = engine, group, name
        mpi = group.channel.mpi
        divisor = group.size() if op is not None and op.name == "AVG" else 1
        handle = getattr(mpi, mpi_name(op)).handle if op is not None else 0
        self.facts = _Call(
            ctypes.pointer(engine.group(group)), KINDS[name], element[0], getattr(mpi, element[1]).handle, handle, divisor, root,
            elements, nbytes, *_counted(sent), *_counted(received), name.encode(),
        )  # fmt: skip
        engine.calls[self.address] = self

    @property
    def address(self) -> int:
        return ctypes.addressof(self.facts)


class Waiting(Routine):
    """What is awaited needs no description: it is known by the memory that is written."""

    name, address = "wait_tensor", 0  # type: ignore[assignment]

    def __init__(self, engine: Calls):
        self.engine = engine


def _counted(counts: list[int] | None) -> tuple:
    """Lengths of parts, and where each begins, as MPI takes them."""
    if counts is None:
        return None, None
    kind = ctypes.c_int * len(counts)
    return kind(*counts), kind(*[sum(counts[:i]) for i in range(len(counts))])


class Calls(Engine):
    """MPI's functions, and the calls of graphs that are under way."""

    def __init__(self, mpi: Any):
        source = resources.files("pullback.distributed").joinpath("native_calls.c").read_text()
        self.library = library = ctypes.CDLL(str(build(source, ("-pthread",))))
        functions = ctypes.CDLL(mpi.__file__)
        found = [*[getattr(functions, n) for n in FUNCTIONS], *[getattr(ctypes.pythonapi, n) for n in PYTHON]]
        addresses = (ctypes.c_void_p * len(found))(*[ctypes.cast(f, ctypes.c_void_p).value for f in found])
        library.setup_calls(addresses, ctypes.c_void_p(int(mpi.IN_PLACE)))
        library.await_target.argtypes, library.await_target.restype = [ctypes.c_void_p], ctypes.c_long
        library.is_pending.argtypes = [ctypes.c_void_p]
        library.read_records.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
        library.read_records.restype = library.count_records.restype = ctypes.c_long
        library.kept_error.restype = ctypes.POINTER(ctypes.c_void_p)
        self.begin, self.await_ = (
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (library.begin_call, library.await_target)
        )
        self.groups: dict[int, tuple[ProcessGroup, _Group]] = {}
        self.calls: dict[int, Collective] = {}
        self.kept: dict[int, Any] = {}  # arrays that a call writes and nobody has awaited, by address
        self.read = 0
        self.waiting = Waiting(self)
        atexit.register(self.library.stop_calls, 1)

    def group(self, pg: ProcessGroup) -> _Group:
        """What the C side knows of a group."""
        if id(pg) not in self.groups:
            page = pg.board.text_address()
            self.groups[id(pg)] = pg, _Group(
                pg.channel.comm.handle, pg.rank(), pg.size(), pg.timeout, pg.cell.ctypes.data, page, pg.board.TEXT,
                pg.group_name.encode(),
            )  # fmt: skip
        return self.groups[id(pg)][1]

    # ---- around a native call
    def ready(self, routines: list[Routine], arrays: tuple) -> bool:
        for routine in routines:
            if not isinstance(routine, Collective):
                continue
            pg = routine.group
            if state.groups.get(pg.group_name) is not pg:
                return False
            self.groups[id(pg)][1].timeout = pg.timeout
        finish_pending(*arrays)  # native code awaits only what native code started
        return True

    def done(self, arrays: tuple) -> None:
        for array in arrays:
            if self.library.is_pending(array.ctypes.data):
                self.kept[array.ctypes.data] = array
        self.pass_on()

    def failed(self, code: int) -> None:
        call, number, error = ctypes.c_void_p(), ctypes.c_long(), ctypes.c_long()
        self.library.last_failure(ctypes.byref(call), ctypes.byref(number), ctypes.byref(error))
        if code == INTERRUPTED:
            ctypes.pythonapi.PyErr_Restore(*[ctypes.c_void_p(e) for e in self.library.kept_error()[:3]])
        found = self.calls[call.value or 0]
        work = Record(found.name, number.value, 0, 0.0, 0.0)
        if code == LATE:
            raise found.group.late(work, found.group.timeout)
        raise DistBackendError(
            f"{found.name} #{number.value} of group {found.group.group_name}: MPI gives the error {error.value}"
        )

    # ---- from Python
    def wait(self, array: Any) -> bool:
        """Wait for what native code started into an array; False where it did not."""
        address = array.ctypes.data
        if self.kept.pop(address, None) is None:
            return False
        code = self.library.await_target(address)
        if code:
            self.failed(code)
        self.pass_on()
        return True

    def pass_on(self) -> None:
        """Give the records of calls that ended to those who measure."""
        end = self.library.count_records()
        logs = {a: c for a, c in self.calls.items() if c.group.log is not None} if end > self.read else {}
        if logs:
            records = (_Record * (end - self.read))()
            for r in records[: self.library.read_records(records, self.read, len(records))]:
                if (call := logs.get(r.call)) is not None and call.group.log is not None:
                    call.group.log.append(Record(call.name, r.number, r.nbytes, r.began, r.ended))  # type: ignore[arg-type]
        self.read = end


_loaded: list[Calls] = []


def loaded() -> Calls | None:
    """The engine, where a graph has used it."""
    return _loaded[0] if _loaded else None


def engine_for(pg: ProcessGroup) -> Calls | str:
    """The engine for a group; or why its calls must be operators."""
    mpi = getattr(pg.channel, "mpi", None)
    if mpi is None:
        return "a collective of one rank, or not over MPI"
    if pg.checker is not None:
        return "TORCH_DISTRIBUTED_DEBUG=DETAIL compares calls first"
    if mpi.Query_thread() != mpi.THREAD_MULTIPLE:
        return "the MPI library is not safe for threads"
    if not _loaded:
        try:
            _loaded.append(Calls(mpi))
        except (NoCompiler, CompileFailed, OSError, AttributeError) as error:
            return f"MPI cannot be called from native code: {error}"
    return _loaded[0]
