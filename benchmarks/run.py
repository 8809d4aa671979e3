"""Run every benchmark and print it; each figure is a ratio taken in one run.

python benchmarks/run.py            (make bench)
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# The last one runs reticent's attacks on one target; `make peers` runs it on all targets, with the peers.
BENCHMARKS = (
    ("ltu.py",),
    ("tightness.py",),
    ("audit.py",),
    ("engine.py",),
    ("private.py",),
    ("watched.py",),
    ("neighbours.py",),
    ("synthesis.py",),
    ("peers.py", "--targets", "forest", "--seeds", "1"),
)


def main() -> None:
    """Run each benchmark in a separate process, so that its peak memory is not that of another."""
    for name, *options in BENCHMARKS:
        print(f"## {name}", flush=True)
        subprocess.run([sys.executable, HERE / name, *options], check=True)


if __name__ == "__main__":
    main()
