"""Make rows with AIM or MST of OpenDP, in an environment of its own (requirements.txt). Runs there, imports nothing of reticent.

Reads the paths of jobs from standard input, and answers each with a line when JOB.rows.npz is written. A job holds the cells of the records (-1 for a missing value), the number of cells
of each column, the method, its limits and rho. The answer holds cells of as many rows, and the CPU seconds of fitting and sampling. One process makes many tables, so that libraries are
imported once, which is not counted, and what jax compiled for one table serves the next.
"""

import json
import resource
import sys

import numpy as np
import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import AIM, MST, _mst

dp.enable_features("contrib")

# MST leaves one unit in the last place for rounding when it divides its budget among its choices; with eight choices their sum still comes out larger than the budget, nearly always ("insufficient budget
# for query: 0.0004252761042836082 > 0.00042527610428360816"), and it stops. It leaves a billionth here.
_mst.prior = lambda x: x * (1 - 1e-9)


def cpu_seconds() -> float:
    """Return the CPU time of this process so far, all threads together."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def released(rows: pl.LazyFrame, keys: dict, algorithm: AIM | MST, rho: float):
    """Return the noisy model of a table."""
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    query = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm)
    return query.release()


def make(path: str) -> None:
    """Do one job."""
    job = np.load(path)
    cells, sizes = job["cells"], job["sizes"]
    names = [f"c{j}" for j in range(cells.shape[1])]
    frame = pl.DataFrame(
        {name: pl.Series([None if v < 0 else int(v) for v in cells[:, j]], dtype=pl.Int64) for j, name in enumerate(names)}
    )  # fmt: skip
    algorithm = {"aim": AIM, "mst": MST}[str(job["method"])](**json.loads(str(job["limits"])))  # fmt: skip
    keys = {name: list(range(sizes[j])) for j, name in enumerate(names)}
    # From a file: a table in memory would be written out at every step of the search for the noise.
    frame.write_parquet(path + ".parquet")
    started = cpu_seconds()
    table = released(
        pl.scan_parquet(path + ".parquet"), keys, algorithm, float(job["rho"])
    )
    # Not "round", the default: mbi 1.1 then draws by each row's place among the rows with the same parents, which are in the order of earlier columns. That ties columns together that the model holds
    # to be independent (MST on COMPAS at rho 1.5: a pair of columns lies .579 from the records, where independence lies .126, and "sample" .154).
    rows = table.synthesize(rows=len(cells), method="sample")
    seconds = cpu_seconds() - started
    made = np.stack([rows[name].fill_null(-1).to_numpy() for name in names], axis=1)
    np.savez_compressed(
        path + ".rows.npz", cells=made.astype(np.int64), seconds=seconds
    )


def main() -> None:
    for line in sys.stdin:
        make(line.strip())
        print("made", flush=True)


if __name__ == "__main__":
    main()
