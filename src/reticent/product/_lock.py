"""Lock this process: from then on nothing in it opens, connects or executes, and it cannot take over the machine."""

import contextlib
import os
import resource
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any

__all__ = ["Lock"]

GIGABYTE = 2**30
# Bytes of memory beside what is used when the process is locked, and per byte of the product.
MOST_MEMORY, MEMORY_PER_BYTE = 8 * GIGABYTE, 8
# A named semaphore, as pools of threads have, is a file of 32 bytes; nothing else is ever written.
MOST_WRITTEN = 64
# Files open at once beside those that are: a module that is imported while another is, and the pipes of a pool of threads.
MORE_FILES = 16
# What a process does to itself. Everything else is refused: the list of what touches the outside grows with every version of Python.
_INSIDE = frozenset(
    [
        *("_thread.start_joinable_thread", "_thread.start_new_thread"),
        *("array.__new__", "builtins.id", "code.__new__", "compile", "exec"),
        *("ctypes.addressof", "ctypes.cdata", "ctypes.cdata/buffer"),
        *("ctypes.create_string_buffer", "ctypes.get_errno", "ctypes.set_errno"),
        *("ctypes.string_at", "ctypes.PyObj_FromPtr", "function.__new__"),
        *("gc.get_objects", "gc.get_referents", "gc.get_referrers", "import"),
        *("marshal.dumps", "marshal.load", "marshal.loads"),
        *("os.putenv", "os.unsetenv"),
        *("object.__delattr__", "object.__getattr__", "object.__setattr__"),
        *("sys._current_frames", "sys._getframe", "sys._getframemodulename"),
        *("sys.excepthook", "sys.unraisablehook", "time.sleep"),
    ]
)
# How many cores there are, which pools of threads ask.
_CORES = frozenset(
    [
        "/proc/cpuinfo",
        "/sys/fs/cgroup/cpu.max",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    ]
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Lock:
    """The lock of this process, and what it has refused.

    Modules may still be imported from the folders of the interpreter and its libraries, because libraries import lazily.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.takes_request = False
        folders = [*site.getsitepackages(), site.getusersitepackages()]
        folders += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
        folders += [str(Path(__file__).parents[1])]
        self._libraries = tuple(os.path.realpath(folder) + os.sep for folder in folders)

    def close(self, *, size: int) -> None:
        """Lock the process for good, with memory for a product of ``size`` bytes."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            used = int(Path("/proc/self/statm").read_text().split()[0])
            memory = used * resource.getpagesize() + MOST_MEMORY
            _limit("RLIMIT_AS", memory + MEMORY_PER_BYTE * size)
        with contextlib.suppress(OSError, ValueError):
            highest = max(int(fd.name) for fd in Path("/proc/self/fd").iterdir())
            _limit("RLIMIT_NOFILE", highest + 1 + MORE_FILES)
        _limit("RLIMIT_FSIZE", MOST_WRITTEN)
        _limit("RLIMIT_CORE", 0)
        sys.path[:] = [path for path in sys.path if self._is_library(path, folder=True)]
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _INSIDE or self._is_allowed(event, arguments):
            return
        if len(self.refused) < 5:
            what = ", ".join(str(value)[:200] for value in arguments[:1])
            self.refused.append(f"{event} {what}".strip())
        raise PermissionError(f"{event} is refused: a product opens nothing")

    def _is_allowed(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event in ("pickle.find_class", "resource.setrlimit"):
            return self.takes_request
        if event == "open":
            path, mode, flags = arguments
            if (flags or 0) & _WRITES or set(mode or "") & set("wax+"):
                return False
            return (isinstance(path, str) and path in _CORES) or self._is_library(path)
        if event in ("os.listdir", "os.scandir", "ctypes.dlopen"):
            return self._is_library(arguments[0], folder=event != "ctypes.dlopen")
        if event in ("ctypes.dlsym", "ctypes.dlsym/handle"):
            return self._is_library(getattr(arguments[0], "_name", None))
        return False

    def _is_library(self, path: Any, *, folder: bool = False) -> bool:
        """Whether a path lies in a folder of the interpreter or its libraries."""
        if not isinstance(path, str | bytes):
            return False
        whole = os.path.realpath(os.fsdecode(path)) + os.sep * folder
        return whole.startswith(self._libraries)


def _limit(name: str, most: int) -> None:
    """Set a limit that cannot be raised again; a system without it has none."""
    kind = getattr(resource, name, None)
    if kind is not None:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
