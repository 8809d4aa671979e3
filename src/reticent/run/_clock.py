"""What time it is, for what is written down."""

import os
from datetime import UTC, datetime

__all__ = ["now"]

EPOCH = "SOURCE_DATE_EPOCH"  # by which others fix dates too, so that files can be made again to the last byte


def now() -> str:
    """Return the time in UTC, to the second; ``SOURCE_DATE_EPOCH``, in seconds since 1970, stands in for the clock."""
    fixed = os.environ.get(EPOCH, "")
    moment = datetime.now(UTC)
    if fixed.isascii() and fixed.isdigit() and len(fixed) <= 10:
        moment = datetime.fromtimestamp(int(fixed), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
