"""A classifier whose worker process is killed once, as the system does when memory runs out."""

import multiprocessing
import os
import signal
from pathlib import Path

from sklearn.linear_model import LogisticRegression


class Mortal(LogisticRegression):
    """Kill the process of the first training that is not in the main one."""

    def __init__(self, flag="", C=1.0):
        super().__init__(C=C)
        self.flag = flag

    def fit(self, X, y):
        inside = multiprocessing.current_process().name != "MainProcess"
        if inside and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)
