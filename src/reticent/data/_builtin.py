"""A table that comes with the installation: patients with diabetes."""

from sklearn.datasets import load_diabetes

from reticent.data._read import table_from_frame
from reticent.data._table import Table

__all__ = ["BUILTIN_NAME", "BUILTIN_TARGET", "builtin_table"]

BUILTIN_NAME = "442 diabetes patients (built in)"
BUILTIN_TARGET = "progression"


def builtin_table() -> Table:
    """Return 442 patients with ten measurements each, and how fast their diabetes progressed.

    Efron, Hastie, Johnstone & Tibshirani, "Least angle regression", Annals of Statistics 32
    (2004), as shipped with scikit-learn. The measure of progression after one year is cut at
    its median: ``slower`` or ``faster``.

    Examples
    --------
    >>> table = builtin_table()
    >>> len(table), table.classes
    (442, ('faster', 'slower'))
    """
    bunch = load_diabetes(as_frame=True, scaled=False)
    faster = bunch.target > bunch.target.median()
    frame = bunch.data.assign(progression=faster.map({True: "faster", False: "slower"}))
    return table_from_frame(frame, target=BUILTIN_TARGET, name=BUILTIN_NAME)
