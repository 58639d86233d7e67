"""What the driver would say."""

streamCaptureModeRelaxed = 2
calls: list = []  # what was waited for
refuses_capture = False


class CUDARuntimeError(RuntimeError):
    pass


def getDeviceCount() -> int:
    return 2


def getDeviceProperties(number: int) -> dict:
    return {
        "name": b"stand-in %d" % number, "major": 9, "minor": number, "totalGlobalMem": 1 << 30, "multiProcessorCount": 4,
        "warpSize": 32, "maxThreadsPerMultiProcessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerBlock": 49152,
        "l2CacheSize": 1 << 20, "integrated": 0, "isMultiGpuBoard": 0,
    }  # fmt: skip


def deviceCanAccessPeer(a: int, b: int) -> int:
    return int(a != b)


def memGetInfo() -> tuple[int, int]:
    return 1 << 29, 1 << 30


def runtimeGetVersion() -> int:
    return 13000
