"""Count what decision 0024 states of the code: parameters, checks of types, lines, public names, and the ways of one audit.

    python benchmarks/structure.py [SRC]

SRC is the folder that holds the package; this checkout's by default. Lines of code are those with a token other than a comment or a docstring.
A *hop* is a pair of modules of two rooms (packages) of which one called the other in an audit of the built-in table, with one worker; an *upward* hop leads to
a room above in the table of layers.
"""

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

# From the top to the bottom; siblings share a number. Rooms of version 0.1.0 that no longer exist were beside these.
LAYERS = {
    "cli": 0,
    "pipeline": 1,
    "audits": 2,
    "report": 3,
    "policy": 4,
    "train": 5,
    "attack": 5,
    "evidence": 5,
    "pool": 6,
    "product": 7,
    "data": 8,
    "account": 8,
    "run": 9,
}
MANY, MOST = 6, 10  # parameters of a function
WATCH = """
import sys
rooms, edges = {rooms!r}, set()
def room(frame):
    name = frame.f_globals.get("__name__", "")
    parts = name.split(".")
    return (parts[1], name) if parts[0] == "reticent" and len(parts) > 1 and parts[1] in rooms else None
def seen(frame, event, argument):
    if event != "call" or frame.f_back is None or frame.f_code.co_name == "<module>":
        return
    to = room(frame)
    if to is None:
        return
    caller = frame.f_back
    while caller is not None and room(caller) is None:
        caller = caller.f_back
    if caller is not None and room(caller)[0] != to[0]:
        edges.add((room(caller), to))
from reticent.cli import main
sys.argv = ["reticent", "audit", "--out", sys.argv[1], "--workers", "1"]
sys.setprofile(seen)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
for (a, _), (b, _) in edges:
    print("hop", a, b)
"""


def count(source: Path) -> dict[str, int]:
    """Return the figures that follow from the text alone."""
    found = dict.fromkeys(
        ("files", "code", "comments", "public", "many", "most", "checks"), 0
    )
    for path in sorted((source / "reticent").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        found["files"] += 1
        documentation = _docstrings(tree)
        code = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found["comments"] += 1
            elif token.string.strip() and token.start[0] not in documentation:
                code.update(range(token.start[0], token.end[0] + 1))
        found["code"] += len(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = [a.arg for a in given.posonlyargs + given.args + given.kwonlyargs]  # fmt: skip
                parameters = len([n for n in names if n not in ("self", "cls")])
                found["many"] += parameters > MANY
                found["most"] += parameters >= MOST
            if (
                path.name == "__init__.py"
                and isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") == "__all__"
            ):
                found["public"] += len(getattr(node.value, "elts", ()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":  # fmt: skip
                found["checks"] += _names_a_product(node.args[1])
    return found


def _names_a_product(kind: ast.expr) -> bool:
    """Return whether a check of types asks for a trainer, a product or a recipe."""
    names = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(kind)}
    if "ModuleType" in names:
        return False
    ends = ("Trainer", "Classifier", "Regressor", "Network", "Module", "Recipe")
    return any(name.endswith(ends) for name in names)


def _docstrings(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines.update(range(value.lineno, (value.end_lineno or 0) + 1))
    return lines


def hops(source: Path, out: Path) -> tuple[int, int]:
    """Return how many hops between rooms one audit makes, and how many of them lead upwards."""
    printed = subprocess.run(
        [sys.executable, "-c", WATCH.format(rooms=set(LAYERS)), str(out)],
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    pairs = [line.split()[1:] for line in printed.splitlines() if line.startswith("hop ")]  # fmt: skip
    return len(pairs), sum(LAYERS[b] < LAYERS[a] for a, b in pairs)


if __name__ == "__main__":
    here = Path(sys.argv[1] if len(sys.argv) > 1 else "src").resolve()
    for name, number in count(here).items():
        print(f"{name}: {number:,}")
    made, upward = hops(here, Path("build/structure"))
    print(f"hops: {made}, upwards {upward}")
