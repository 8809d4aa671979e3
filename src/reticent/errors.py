"""The exceptions of reticent; each message says what was found, why it matters and what to do.

They form one tree::

    ReticentError
    ├── InvalidInput (ValueError)        an argument or option that cannot be used
    │   ├── InvalidTable                 a file or frame that is not a usable table
    │   ├── InvalidSplit                 parts that cannot be audited
    │   ├── InvalidPolicy                a policy with unknown or impossible entries
    │   ├── InvalidPredictions           outputs that are not numbers, or of the wrong shape
    │   └── InvalidSpec                  a trainer description that cannot be read
    ├── TrainerFailed (RuntimeError)     the user's trainer raised while it was training
    ├── WorkerLost (RuntimeError)        a job whose process died repeatedly
    ├── UnsafeProduct (ValueError)       a saved product that would run a stranger's code
    └── OutputRefused (OSError)          a folder or file that cannot be written
"""

__all__ = [
    "InvalidInput",
    "InvalidPolicy",
    "InvalidPredictions",
    "InvalidSpec",
    "InvalidSplit",
    "InvalidTable",
    "OutputRefused",
    "ReticentError",
    "TrainerFailed",
    "UnsafeProduct",
    "WorkerLost",
]


class ReticentError(Exception):
    """Base class of every exception that reticent raises on purpose."""


class InvalidInput(ReticentError, ValueError):
    """An argument, option or file whose content cannot be used."""


class InvalidTable(InvalidInput):
    """A file or data frame that is not a usable table."""


class InvalidSplit(InvalidInput):
    """Parts of a table that cannot be audited."""


class InvalidPolicy(InvalidInput):
    """A policy with unknown, missing or impossible entries."""


class InvalidPredictions(InvalidInput):
    """Outputs of a product that are not finite numbers of the right shape."""


class InvalidSpec(InvalidInput):
    """A description of a trainer that cannot be read."""


class TrainerFailed(ReticentError, RuntimeError):
    """A trainer that raised an exception while it was training."""


class WorkerLost(ReticentError, RuntimeError):
    """A job that could not be finished because its process died repeatedly."""


class UnsafeProduct(ReticentError, ValueError):
    """A saved product that could execute code when it is loaded."""


class OutputRefused(ReticentError, OSError):
    """A folder or file that cannot be written."""
