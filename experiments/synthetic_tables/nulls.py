"""How often our statistics alarm on tables that know nobody in question: the rates beside the nominal ones.

python experiments/synthetic_tables/nulls.py [--draws 60] [--rows 300]

Three alarms were seen once: a CART table of other people, a tree at epsilon 1 by singled-out rows, and Cardio's fresh people by attribute inference. Each is repeated here on
many draws of people. The tree is trained on people who are neither members nor non-members, because a tree of the members may leak.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import tables
from generators import cart_of_others, fresh_people, tree
from tables import TARGETS, coded, numeric

from reticent.evidence import infer_attribute, link_halves, privacy_loss, single_out
from reticent.run import stream, write_text

HERE = Path(__file__).parent
RESULTS = HERE / "nulls.json"
TABLE = "cardio70k"


def tree_of_others(people, rng):
    return tree(1.0)(replace(people, train=people.fresh), rng)


MAKE = {
    "fresh people": fresh_people,
    "CART of other people": cart_of_others,
    "tree of other people, epsilon 1": tree_of_others,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    tables.ROWS = options.rows
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for draw in range(options.draws):
        # Draws beyond those of the benchmark, so that the alarms themselves are not counted again.
        people = tables.draw(TABLE, 1_000 + draw)
        for name, make in MAKE.items():
            key = f"{name}/{options.rows}/{draw}"
            if key not in found:
                rng = np.random.default_rng([draw, len(name)])
                found[key] = p_values(people, make(people, rng), stream(draw, name))
        write_text(RESULTS, json.dumps(found, indent=1, sort_keys=True) + "\n")


def p_values(people, frame, rng) -> dict[str, float]:
    """Return the p-value of every statistic."""
    train, holdout, made = (coded(people, f) for f in (people.train, people.holdout, frame))  # fmt: skip
    names = [*numeric(people.table), *[c for c in people.table if c not in numeric(people.table)]]  # fmt: skip
    half = np.arange(len(names)) % 2 == 0
    out = single_out(train, holdout, made, level=0.95, rng=rng)
    found = {
        "privacy loss": privacy_loss(train, holdout, [made], distance="mixed", level=0.95, rng=rng, permutations=99),
        "singling out, values": out.values,
        "singling out, rows": out.rows,
        "linkability": link_halves(train, holdout, made, first=half, level=0.95, rng=rng),
        "inference": infer_attribute(train, holdout, made, secret=names.index(TARGETS[TABLE]), level=0.95, rng=rng),
    }  # fmt: skip
    return {k: v.p_value for k, v in found.items() if v is not None}


if __name__ == "__main__":
    main()
