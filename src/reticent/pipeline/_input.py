"""Turn what callers pass as data into a table, and check early that a folder can be written."""

import contextlib
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from reticent.data import Table, table_from_frame
from reticent.errors import InvalidInput, OutputRefused
from reticent.run import open_folder

__all__ = ["must_be_writable", "table_of"]


def table_of(
    X: Any, y: str | ArrayLike | None = None, *, quantity: bool = False
) -> Table:
    """Return records as a table.

    Parameters
    ----------
    X : Table, data frame or array, shape (n, d)
        Records, in a frame of any library; a table is returned as it is.
    y : str or array-like, shape (n,), optional
        Targets, or the column of the frame that holds them; none for a table, which has its own.
    quantity : bool
        Whether the target is a number to be predicted and not a class.

    Raises
    ------
    InvalidInput
        If there are no classes, or two answers to what they are.

    Examples
    --------
    >>> import numpy as np
    >>> table_of(np.zeros((4, 2)), [0, 1, 0, 1]).classes
    ('0', '1')
    """
    if isinstance(X, Table):
        if y is not None:
            raise InvalidInput(
                "X is a table with classes of its own, and y brings others; leave y out."
            )
        return X
    if y is None:
        raise InvalidInput(
            "y is missing, so there is nothing to predict; pass classes, or the name of the column that holds them."
        )
    return table_from_frame(X, target=y, quantity=quantity, name="X")


def must_be_writable(folder: Path, *, private: bool = False) -> None:
    """Write to a folder and remove it again, to fail before hours of work and not after.

    A folder that was not there is gone again, so that none is left behind by input that is refused later. A private one is kept: whoever writes to it relies on it.

    Parameters
    ----------
    folder : Path
        The folder.
    private : bool
        Whether the folder is made, for its owner alone.

    Raises
    ------
    OutputRefused
        If nothing can be written there.
    """
    absent = [f for f in (folder, *folder.parents) if not f.exists()]
    try:
        if private:
            open_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions can be read, but only writing tells of quotas and read-only mounts.
        probe = folder / ".writable"
        probe.write_text("")
        probe.unlink()
        # Somebody else may have put something there in the meantime.
        with contextlib.suppress(OSError):
            for made in absent if not private else ():
                made.rmdir()
    except OSError as error:
        raise OutputRefused(
            f"the folder {folder} cannot be written ({error.strerror or error}), so the result would be lost; "
            "choose another one."
        ) from error
