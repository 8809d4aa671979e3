"""Print every benchmark; each figure is a ratio taken in one run.

python benchmarks/run.py            (make bench)
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# `make peers` runs the last one with the peers beside it, on all targets.
BENCHMARKS = (
    ("ltu.py",),
    ("tightness.py",),
    ("audit.py",),
    ("engine.py",),
    ("private.py",),
    ("watched.py",),
    ("peers.py", "--targets", "forest", "--seeds", "1"),
)


def main() -> None:
    """Run each benchmark in a process of its own, so that peak memory is its own."""
    for name, *options in BENCHMARKS:
        print(f"## {name}", flush=True)
        subprocess.run([sys.executable, HERE / name, *options], check=True)


if __name__ == "__main__":
    main()
