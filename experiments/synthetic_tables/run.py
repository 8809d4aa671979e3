"""Make tables with known faults, and let reticent and four peers judge them. Resumable: results.json keeps what is done.

python experiments/synthetic_tables/run.py [--repeats 3] [--tools ours,sdmetrics,anonymeter,mostlyai,verdict] [--tables adult,...] [--only "fresh people; CART"] [--environments FOLDER]

The peers and the deep generators need environments of their own (see README at the top of each script). What is not installed is left out, and said so.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from generators import DEEP, GENERATORS, NULLS
from page import write_page
from tables import TARGETS, coded, draw, numeric

from reticent.evidence import (
    count_copies,
    infer_attribute,
    link_halves,
    privacy_loss,
    single_out,
)
from reticent.run import stream, write_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
PIECES = HERE / "pieces"
PEERS = {
    "sdmetrics": (
        ".venv-tablepeers",
        "peers_sdmetrics_syntheval.py",
        ("sdmetrics", "syntheval"),
    ),
    "anonymeter": (".venv-anonymeter", "peers_anonymeter.py", ("anonymeter",)),
    "mostlyai": (".venv-mostlyai", "peers_mostlyai.py", ("mostlyai-qa",)),
}
LEVEL = 0.95


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--null-repeats", type=int, default=6)
    parser.add_argument("--tables", default=",".join(TARGETS))
    parser.add_argument("--tools", default="ours,sdmetrics,anonymeter,mostlyai,verdict")
    parser.add_argument("--only", help="kinds of synthetic tables, separated by ;")
    parser.add_argument("--at-most", type=int, help="tables that each tool judges now")
    parser.add_argument("--no-deep", action="store_true")
    parser.add_argument("--environments", type=Path, default=ROOT)
    options = parser.parse_args()
    tables = options.tables.split(",")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    jobs = make_tables(
        tables, options.repeats, options.null_repeats, deep=not options.no_deep
    )
    if options.only:
        only = {name.strip() for name in options.only.split(";")}
        jobs = [one for one in jobs if one["key"].split("/")[1] in only]
    for tool in filter(None, options.tools.split(",")):
        names = PEERS[tool][2] if tool in PEERS else (tool,)
        todo = [j for j in jobs if any(f"{j['key']}/{n}" not in results for n in names)]
        todo = todo[: options.at_most]
        if tool in PEERS:
            ask_peer(todo, results, options.environments, *PEERS[tool])
        else:
            judge_all(todo, results, tool, {"ours": judge, "verdict": verdict}[tool])
    write_page(results)


def make_tables(tables, repeats, null_repeats, *, deep):
    """Write the tables of every repeat as CSV files; those that stand already are kept."""
    jobs, folders = [], []
    for table in tables:
        for repeat in range(max(repeats, null_repeats)):
            folder = PIECES / table / str(repeat)
            folder.mkdir(parents=True, exist_ok=True)
            people = draw(table, repeat)
            for part in ("train", "holdout"):
                if not (folder / f"{part}.csv").exists():
                    getattr(people, part).to_csv(folder / f"{part}.csv", index=False)
            for name, make in GENERATORS.items():
                if repeat >= (null_repeats if name in NULLS else repeats):
                    continue
                file = folder / f"{slug(name)}.csv"
                if not file.exists():
                    rng = np.random.default_rng([repeat, *name.encode()])
                    make(people, rng).to_csv(file, index=False)
                jobs.append(job(table, name, repeat, folder))
            if repeat == 0:
                folders.append(folder)
    python = ROOT / ".venv-generators/bin/python"
    if deep and python.exists():
        subprocess.run([python, HERE / "deep.py", *folders], check=True)
    jobs += [
        job(folder.parent.name, name, 0, folder)
        for folder in folders
        for name in DEEP
        if (folder / f"{name}.csv").exists()
    ]
    return jobs


def job(table, name, repeat, folder):
    return {
        "key": f"{table}/{name}/{repeat}",
        "folder": str(folder),
        "table": slug(name),
        "target": TARGETS[table],
    }


def slug(name):
    return (
        name
        if name in DEEP
        else name.replace(" ", "_").replace(",", "").replace("%", "percent")
    )


def judge_all(jobs, results, tool, judged):
    for one in jobs:
        key = f"{one['key']}/{tool}"
        started = time.process_time()
        scores = judged(one)
        if scores is not None:
            results[key] = {"scores": scores, "seconds": time.process_time() - started}
            keep(results)


def judge(one):
    """Our statistics of one table."""
    table, _, repeat = one["key"].split("/")
    people = draw(table, int(repeat))
    import pandas as pd

    frame = pd.read_csv(Path(one["folder"]) / f"{one['table']}.csv")
    train, holdout, made = (
        coded(people, f) for f in (people.train, people.holdout, frame)
    )
    rng = stream(0, one["key"])
    loss = privacy_loss(
        train, holdout, [made], distance="mixed", level=LEVEL, rng=rng, permutations=99
    )
    out = single_out(train, holdout, made, level=LEVEL, rng=rng)
    names = [
        *numeric(people.table),
        *[c for c in people.table if c not in numeric(people.table)],
    ]
    half = np.arange(len(names)) % 2 == 0
    found = {
        "singling out, values": out.values,
        "singling out, rows": out.rows,
        "linkability": link_halves(
            train, holdout, made, first=half, level=LEVEL, rng=rng
        ),
        "inference": infer_attribute(
            train,
            holdout,
            made,
            secret=names.index(one["target"]),
            level=LEVEL,
            rng=rng,
        ),
    }
    copied = count_copies(train, holdout, made, level=LEVEL)
    scores = {
        name: [d.excess.value, d.excess.low, d.excess.high, d.p_value]
        for name, d in found.items()
        if d is not None
    }
    scores["privacy loss"] = [
        loss.loss.value,
        loss.loss.low,
        loss.loss.high,
        loss.p_value,
    ]
    scores["accuracy"] = [
        loss.train.real.value,
        loss.train.synthetic.value,
        loss.train.biased,
    ]
    scores["copies"] = [copied.excess.value, copied.excess.low, copied.excess.high]
    return scores


def verdict(one):
    """The verdict of the whole audit, by the command that users have, and the limits that are broken; None if the command failed."""
    folder = Path(one["folder"])
    report = folder / f"audit_{one['table']}"
    command = [
        sys.executable, "-m", "reticent", "audit", str(folder / "train.csv"),
        "--synthetic", str(folder / f"{one['table']}.csv"),
        "--holdout", str(folder / "holdout.csv"),
        "--target", one["target"], "--json", "--workers", "1", "--out", str(report),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    limits = json.loads((report / "dossier.json").read_text(encoding="utf-8"))["limits"]
    return {
        "verdict": {0: "RELEASE", 1: "REFUSE", 3: "INCONCLUSIVE"}[done.returncode],
        "broken": [each["measure"] for each in limits if each["outcome"] == "broken"],
    }


def ask_peer(jobs, results, environments, environment, script, tools):
    python = environments / environment / "bin/python"
    if not python.exists():
        print(f"{environment} is not there; {', '.join(tools)} left out")
        return
    with subprocess.Popen(
        [python, HERE / script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for one in jobs:
            process.stdin.write(json.dumps(one) + "\n")
            process.stdin.flush()
            for _ in tools:
                answer = json.loads(process.stdout.readline())
                results[answer["key"]] = {k: answer[k] for k in ("scores", "seconds")}
                keep(results)
        process.stdin.close()


def keep(results):
    if RESULTS.exists():
        # Several tools may run side by side; each adds what is its own.
        results |= {
            k: v for k, v in json.loads(RESULTS.read_text()).items() if k not in results
        }
    write_text(RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
