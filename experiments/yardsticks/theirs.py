"""Make rows with AIM or MST of OpenDP, in an environment of its own (requirements.txt). Runs there, imports nothing of reticent.

    python theirs.py JOB.npz ROWS.npz

A job holds the cells of the records (-1 for a missing value), the number of cells of each column, the method, its limits and rho. The
answer holds cells of as many rows, and the CPU seconds of fitting and sampling; importing the libraries is not counted.
"""

import json
import resource
import sys

import numpy as np
import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import AIM, MST
from opendp.mod import OpenDPException

dp.enable_features("contrib")

# With some values of rho, the parts of MST's budget add up to one unit in the last place more than there is (seen with 9 columns at epsilon 0.5: "insufficient budget for query: 0.0004252761042836082 >
# 0.00042527610428360816"), and it stops. It is then asked again with a millionth less; the attempt that stopped is neither used nor timed.
ATTEMPTS, LESS = 20, 1e-6


def cpu_seconds() -> float:
    """Return the CPU time of this process so far, all threads together."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def released(frame: pl.DataFrame, keys: dict, algorithm: AIM | MST, rho: float):
    """Return the noisy model of a table."""
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    query = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm)
    return query.release()


def main() -> None:
    job = np.load(sys.argv[1])
    cells, sizes = job["cells"], job["sizes"]
    names = [f"c{j}" for j in range(cells.shape[1])]
    frame = pl.DataFrame(
        {name: pl.Series([None if v < 0 else int(v) for v in cells[:, j]], dtype=pl.Int64) for j, name in enumerate(names)}
    )  # fmt: skip
    algorithm = {"aim": AIM, "mst": MST}[str(job["method"])](**json.loads(str(job["limits"])))  # fmt: skip
    keys = {name: list(range(sizes[j])) for j, name in enumerate(names)}
    rho = float(job["rho"])
    for attempt in range(ATTEMPTS):
        started = cpu_seconds()
        try:
            table = released(frame, keys, algorithm, rho * (1 - attempt * LESS))
            break
        except OpenDPException as error:
            if "insufficient budget" not in str(error) or attempt == ATTEMPTS - 1:
                raise
    rows = table.synthesize(rows=len(cells))
    seconds = cpu_seconds() - started
    made = np.stack([rows[name].fill_null(-1).to_numpy() for name in names], axis=1)
    np.savez_compressed(sys.argv[2], cells=made.astype(np.int64), seconds=seconds)


if __name__ == "__main__":
    main()
