"""What can be recorded: kinds of activity, scopes of events, and which of them this machine offers."""

from __future__ import annotations

from enum import Enum


class ProfilerActivity(Enum):
    """Where work is done that a profile may record. Only the CPU's is."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class RecordScope(Enum):
    """What kind of thing an event is."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


def supported_activities() -> set[ProfilerActivity]:
    """The activities that `profile` can record."""
    return {ProfilerActivity.CPU}


class ExecutionTraceObserver:
    """Would write PyTorch's execution-trace format, which is not supported: asking for a file raises."""

    def register_callback(self, output_file_path: str) -> None:
        raise NotImplementedError(
            f"execution traces ({output_file_path!r}) are not supported; export_chrome_trace(path) writes a trace"
        )

    def unregister_callback(self) -> None:
        """Nothing was registered."""

    @property
    def is_registered(self) -> bool:
        return False

    def is_running(self) -> bool:
        return False

    def start(self) -> None:
        """Nothing is registered, so nothing starts."""

    def stop(self) -> None:
        """Nothing runs."""

    def cleanup(self) -> None:
        """Nothing is held."""

    def get_output_file_path(self) -> str | None:
        return None
