"""Make docs/reference/api.md from the public names of the code.

The pages are read from the source, never imported: the result depends on the files alone,
not on the version of Python or of any library. `make docs` runs this; a test compares.
"""

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "reference" / "api.md"

# From the top of the layers to the bottom; the command line stands in the guide.
MODULES = (
    "reticent",
    "reticent.account",
    "reticent.pipeline",
    "reticent.audits",
    "reticent.report",
    "reticent.report.sections",
    "reticent.policy",
    "reticent.evidence",
    "reticent.evidence.measures",
    "reticent.attack",
    "reticent.attack.blind",
    "reticent.attack.reader",
    "reticent.attack.blind",
    "reticent.attack.regression",
    "reticent.attack.synthetic",
    "reticent.train",
    "reticent.train.private",
    "reticent.train.marginals",
    "reticent.train.wgan",
    "reticent.train.soft",
    "reticent.train.tensors",
    "reticent.pool",
    "reticent.product",
    "reticent.product.contents",
    "reticent.product.clean",
    "reticent.data",
    "reticent.run",
    "reticent.testing",
    "reticent.errors",
)
WIDTH = 88
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def main() -> None:
    """Write the page."""
    PAGE.write_text(make_page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def make_page() -> str:
    """Return the whole page as Markdown."""
    parts = [
        "# API",
        "Every public name of the Python packages, with its signature and the first paragraph of its docstring. "
        "The docstrings in the code say more: parameters, formulas, references and examples. "
        "This page is made by `make docs`; change the docstrings instead.",
        "\n".join(f"- [`{name}`](#{_anchor(name)}): {_job(name)}" for name in MODULES),
    ]
    for module in MODULES:
        parts += [f"## {module}", _job(module)]
        parts += [_entry(module, name) for name in _public(module)]
    return "\n\n".join(parts) + "\n"


def _file(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _public(module: str) -> list[str]:
    """Return the names in a module's ``__all__``, sorted without regard to case."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and _names(node) == ["__all__"]:
            return sorted(ast.literal_eval(node.value), key=str.lower)
    raise LookupError(f"{module} has no __all__")


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return []


def _find(module: str, name: str) -> tuple[str, Definition | None]:
    """Return the module a name is defined in, and its definition there."""
    tree = _tree(module)
    for node in tree.body:
        if name in _names(node):
            assert isinstance(node, Definition)
            return module, node
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [a.name for a in node.names]:
            return _find(str(node.module), name)
    return module, None


def _entry(module: str, name: str) -> str:
    home, node = _find(module, name)
    if module == "reticent":
        if node is None:
            return f"### {module}.`{name}`\n\nThe version of the installed package."
        package = next(
            listed
            for listed in MODULES[1:]
            if home.startswith(f"{listed}.") and name in _public(listed)
        )
        link = f"[`{package}.{name}`](#{_anchor(f'{package}.{name}')})"
        return f"### {module}.{name}\n\nThe same as {link}."
    if node is None:
        raise LookupError(f"{name} of {module} is not defined anywhere")
    if isinstance(node, ast.FunctionDef):
        parts = [_code(_signature(node)), _paragraph(node)]
    elif isinstance(node, ast.ClassDef):
        parts = [_code(_class_signature(node)), _paragraph(node), *_members(node)]
    else:
        parts = [_code([ast.unparse(node)])]
    return "\n\n".join([f"### {module}.{name}", *[p for p in parts if p]])


def _code(lines: list[str]) -> str:
    """Return a signature as a code block: one line, or one parameter per line."""
    whole = "".join(lines)
    if len(lines) == 3 and len(whole) > WIDTH:
        first, arguments, last = lines
        inner = "".join(f"    {a},\n" for a in arguments.split("\0"))
        whole = f"{first}\n{inner}{last}"
    text = whole.replace("\0", ", ")
    return f"```text\n{text}\n```"


def _signature(node: ast.FunctionDef, *, method: bool = False) -> list[str]:
    """Return name, parameters (separated by a null character) and result."""
    arguments = _arguments(node.args)[1 if method else 0 :]
    result = f" -> {_kind(node.returns)}" if node.returns else ""
    return [f"{node.name}(", "\0".join(arguments), f"){result}"]


def _arguments(args: ast.arguments) -> list[str]:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    made = [_argument(a, d) for a, d in zip(positional, defaults, strict=True)]
    if args.vararg:
        made.append("*" + _argument(args.vararg, None))
    elif args.kwonlyargs:
        made.append("*")
    pairs = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return made + [_argument(a, d) for a, d in pairs]


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_kind(argument.annotation)}" if argument.annotation else ""
    equals = " = " if kind else "="
    return f"{argument.arg}{kind}" + (
        f"{equals}{ast.unparse(default)}" if default is not None else ""
    )


def _kind(annotation: ast.expr) -> str:
    """Return a type as written; a name in quotes is that name."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation)


def _class_signature(node: ast.ClassDef) -> list[str]:
    if not _is_dataclass(node):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return [f"class {node.name}" + (f"({bases})" if bases else "")]
    made = []
    for field in node.body:
        if isinstance(field, ast.AnnAssign):
            text = f"{_names(field)[0]}: {_kind(field.annotation)}"
            if field.value is not None:
                value = ast.unparse(field.value)
                text += " = " + ("..." if value.startswith("field(") else value)
            made.append(text)
    return [f"{node.name}(", "\0".join(["*", *made]), ")"]


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(
        ast.unparse(d).startswith("dataclass(") and "kw_only=True" in ast.unparse(d)
        for d in node.decorator_list
    )


def _members(node: ast.ClassDef) -> list[str]:
    """Return the values of an enumeration, the public methods and the properties."""
    lines = []
    for item in node.body:
        if isinstance(item, ast.Assign) and _names(item)[0].isupper():
            lines.append(f"- `{ast.unparse(item)}`")
        if not isinstance(item, ast.FunctionDef) or item.name.startswith("_"):
            continue
        decorators = [ast.unparse(d) for d in item.decorator_list]
        if any(d.endswith("property") for d in decorators):
            shown = item.name + (f": {_kind(item.returns)}" if item.returns else "")
        else:
            bound = "staticmethod" not in decorators
            shown = "".join(_signature(item, method=bound)).replace("\0", ", ")
        lines.append(f"- `{shown}`: {_paragraph(item)}")
    return ["\n".join(lines)] if lines else []


def _job(module: str) -> str:
    return _first(ast.get_docstring(_tree(module)) or "")


def _paragraph(node: ast.FunctionDef | ast.ClassDef) -> str:
    return _first(ast.get_docstring(node) or "")


def _first(docstring: str) -> str:
    """Return the first paragraph as Markdown."""
    text = " ".join(textwrap.dedent(docstring).strip().split("\n\n")[0].split())
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    text = re.sub(r" \((?:[^()]* of )?\[\d+\]_\)| \[\d+\]_", "", text)
    return text.removesuffix("::")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    main()
