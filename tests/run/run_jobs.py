"""Jobs that the tests of workers give to real processes."""

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd


def numbers(shared, item):
    """Sums whose last digits depend on the order in which they are added."""
    rng = np.random.default_rng(item)
    matrix = rng.normal(size=(300, 200)) @ shared
    return np.linalg.svd(matrix, compute_uv=False), float(matrix.sum()), os.getpid()


def meets(folder, item):
    """Wait until a second process has begun too, at most 30 seconds."""
    (Path(folder) / str(os.getpid())).touch()
    until = time.perf_counter() + 30
    while len(list(Path(folder).iterdir())) < 2 and time.perf_counter() < until:
        time.sleep(0.01)
    return os.getpid()


def slow_first(shared, item):
    time.sleep(0.3 if item == 0 else 0)
    return item * shared


def waits_for_the_others(folder, item):
    """Item 0 ends when all of the other nine have ended, or after 30 seconds, which is an error."""
    if item:
        (Path(folder) / f"ended {item}").touch()
        return item
    until = time.perf_counter() + 30
    while len(list(Path(folder).glob("ended *"))) < 9:
        if time.perf_counter() > until:
            raise TimeoutError("the other jobs wait for the first one")
        time.sleep(0.01)
    return item


def fails_after_the_others(folder, item):
    """As above, but item 0 fails."""
    waits_for_the_others(folder, item)
    if not item:
        raise KeyError("the first")
    return item


def travels(shared, item):
    """Whether some values can be sent back from here."""
    from reticent.run import can_travel

    return can_travel(np.eye(3)), can_travel(lambda: 3), can_travel(threading.Lock())


def fails_at_three(shared, item):
    if item == 3:
        raise KeyError("three", item)
    return item


class Unsendable(Exception):
    """An exception that cannot be pickled, as its constructor wants other arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fails_unsendably(shared, item):
    raise Unsendable("this", "that")


def dies_once(folder, item):
    """Kill the process of item 2 the first time."""
    flag = Path(folder) / "died"
    if item == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def dies_at_two(shared, item):
    with (Path(shared) / f"{item}").open("a") as file:
        file.write("x")
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def threads_and_nested(workers, item):
    from threadpoolctl import threadpool_info

    threads = {library["num_threads"] for library in threadpool_info()}
    processes = {pid for _, _, pid in workers.map(numbers, [0, 1], shared=np.eye(200))}
    return threads, processes, os.getpid()


class CountsLoads:
    """Writes one line to a file each time it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __getstate__(self):
        return {"file": self.file}

    def __setstate__(self, state):
        self.file = state["file"]
        with Path(self.file).open("a") as file:
            file.write(f"{os.getpid()}\n")


def with_counter(shared, item):
    _, array = shared
    array[item] += 1  # may be written to, and nobody else sees it
    return os.getpid(), float(array.sum())


def twice_and_log(shared, item):
    with (Path(shared) / "log").open("a") as file:
        file.write(f"{item}\n")
    return np.full(3, 2.0 * item)


def has_imported(shared, item):
    """Say whether this process has a module, without importing it."""
    return item in sys.modules


class OfMailbox:
    """Becomes a function of a module that is imported where it arrives."""

    def __call__(self):
        raise AssertionError("nobody calls it")

    def __reduce__(self):
        return __import__, ("mailbox",)


HELD = []  # of this process, for as long as it lives


def grows(shared, item):
    """Hold some megabytes for good, long enough apart that loky looks at them, and say which process this is."""
    HELD.append(np.ones(shared * 2**17))
    time.sleep(1.1)
    return os.getpid()


def gives_much(shared, item):
    """Return some megabytes beside something small, which may hold what was shared as well."""
    return {"much": np.arange(shared * 2**17) + item, "frame": pd.DataFrame({"a": ["x", item]}), "item": item}  # fmt: skip


def looks_for_garbage(shared, item):
    """Return whether this process does, and how much it never looks through."""
    return gc.isenabled(), gc.get_freeze_count()
