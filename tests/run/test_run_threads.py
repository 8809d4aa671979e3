"""Libraries are kept on one thread, those that are loaded later as well."""

import subprocess
import sys

from threadpoolctl import threadpool_info

from reticent.run import one_thread
from reticent.run._threads import thread_pools


def openmp():
    return [pool for pool in threadpool_info() if pool["user_api"] == "openmp"]


def test_openmp_has_one_thread_inside_and_as_many_as_before_outside():
    import sklearn.ensemble  # noqa: F401  which loads OpenMP

    before = openmp()
    assert before
    with one_thread():
        assert {pool["num_threads"] for pool in openmp()} == {1}
    assert openmp() == before


def test_linear_algebra_has_one_thread_inside():
    with one_thread("blas"):
        pools = threadpool_info()
    assert {p["num_threads"] for p in pools if p["user_api"] == "blas"} == {1}


def test_libraries_are_looked_for_once_and_again_after_an_import():
    code = """
import numpy
from reticent.run._threads import thread_pools
before = thread_pools()
assert thread_pools() is before
import scipy.linalg  # with a library of its own
after = thread_pools()
assert len(after.info()) > len(before.info()), after.info()
with after.limit(limits=1):
    assert {pool["num_threads"] for pool in thread_pools().info()} == {1}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert thread_pools() is thread_pools()
