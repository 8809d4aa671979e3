"""Print every benchmark; each figure is a ratio taken in one run.

python benchmarks/run.py            (make bench)
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = ("ltu.py", "audit.py", "pool.py", "engine.py")


def main() -> None:
    """Run each benchmark in a process of its own, so that peak memory is its own."""
    for name in BENCHMARKS:
        print(f"## {name}", flush=True)
        subprocess.run([sys.executable, HERE / name], check=True)


if __name__ == "__main__":
    main()
