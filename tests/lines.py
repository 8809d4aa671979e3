"""Say which share of the lines the tests ran, file by file, and fail below a floor.

    python tests/lines.py build/lines.json 84

Reads what SlipCover wrote. Its own option for a floor forgets the lines that processes of pytest-xdist have run.
"""

import json
import sys
from pathlib import Path

SHOWN = 15  # files with the most lines that no test runs


def main(path: str, floor: str) -> int:
    """Print the files with the most lines that were not run, and the share of all lines that were."""
    counted = json.loads(Path(path).read_text(encoding="utf-8"))["files"]
    missing = {name: len(file["missing_lines"]) for name, file in counted.items()}
    run = {name: len(file["executed_lines"]) for name, file in counted.items()}
    for name in sorted(missing, key=missing.get, reverse=True)[:SHOWN]:
        share = run[name] / max(run[name] + missing[name], 1)
        print(f"{missing[name]:5d} lines not run  {share:4.0%}  {name}")
    share = sum(run.values()) / max(sum(run.values()) + sum(missing.values()), 1)
    print(f"Lines that were run: {share:.1%} (at least {floor} % are asked for).")
    return int(100 * share < float(floor))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
