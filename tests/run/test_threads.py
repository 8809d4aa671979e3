"""One thread for each job, also in libraries that were loaded after the first one."""

import subprocess
import sys

from threadpoolctl import threadpool_info

from reticent.run import Serial, one_thread


def threads(api):
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == api}  # fmt: skip


def test_inside_there_is_one_thread_and_afterwards_as_many_as_before():
    before = threads("openmp"), threads("blas")
    with one_thread():
        assert threads("openmp") <= {1}
        assert threads("blas") == before[1]
    assert (threads("openmp"), threads("blas")) == before


def test_jobs_have_one_thread_of_every_library():
    (inside,) = Serial().map(lambda *_: (threads("openmp"), threads("blas")), [0], shared=None)  # fmt: skip
    assert inside[0] | inside[1] == {1}


def test_a_library_that_is_loaded_later_is_found():
    """The pools are remembered until something is imported; numpy's BLAS comes after the first look here."""
    script = """
from reticent.run._threads import thread_pools
from threadpoolctl import threadpool_info
early = len(thread_pools().lib_controllers)
import sklearn.ensemble
pools = thread_pools()
assert len(pools.lib_controllers) > early, (early, pools.info())
with pools.limit(limits=1):
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}
print("found")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout == "found\n", done.stderr
