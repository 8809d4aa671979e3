"""Read from a source file what it imports, without running it."""

import ast
import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Imports", "imports_of"]

# Names that run code which no import statement mentions.
RUNS_ANYTHING = frozenset(
    {
        "exec",
        "eval",
        "builtins.exec",
        "builtins.eval",
        "runpy.run_module",
        "runpy.run_path",
        "importlib.machinery.SourceFileLoader",
        "importlib.util.spec_from_file_location",
    }
)
IMPORTS_BY_NAME = frozenset(
    {
        "__import__",
        "builtins.__import__",
        "importlib.__import__",
        "importlib.import_module",
    }
)


@dataclass(frozen=True, kw_only=True)
class Imports:
    """What one source file imports.

    Parameters
    ----------
    modules : tuple of str
        Names that can only be those of modules.
    members : tuple of tuple of str
        Pairs of a module and a name taken from it, which may be a submodule or anything else;
        ``"*"`` takes every name.
    strings : frozenset of str
        The identifiers that the file contains as text: ``__all__`` lists in this way what ``"*"`` imports.
    opaque : tuple of str
        One reason for each way of running code that cannot be followed.
    """

    modules: tuple[str, ...] = ()
    members: tuple[tuple[str, str], ...] = ()
    strings: frozenset[str] = frozenset()
    opaque: tuple[str, ...] = ()


@functools.lru_cache(maxsize=1024)  # a large project has some hundred modules
def imports_of(source: bytes, file: str, package: str) -> Imports:
    r"""Return what a source file imports, at the top and inside functions and classes.

    Parameters
    ----------
    source : bytes
        The text of the file.
    file : str
        Its name, for the reasons.
    package : str
        What relative imports are relative to.

    Examples
    --------
    >>> text = b"from . import near\ndef f(): import far.away"
    >>> imports_of(text, "mine.py", "mine").modules
    ('mine', 'far.away')
    >>> imports_of(b"eval('1')", "mine.py", "").opaque
    ('mine.py, line 1, uses eval, so the code that runs cannot be told from the file.',)
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        reason = f"{file} is not readable Python ({error}), so its imports are unknown."
        return Imports(opaque=(reason,))
    return _Reader(file, package, tree).read()


class _Reader:
    """Collect the imports of one syntax tree."""

    def __init__(self, file: str, package: str, tree: ast.Module) -> None:
        self.file, self.package, self.tree = file, package, tree
        self.modules: list[str] = []
        self.members: list[tuple[str, str]] = []
        self.reasons: list[str] = []
        self.origins = dict(self._origins())

    def read(self) -> Imports:
        followed: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.modules += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                self._import_from(node)
            elif isinstance(node, ast.Call):
                if self._dotted(node.func) in IMPORTS_BY_NAME:
                    followed.add(id(node.func))
                    self._import_by_name(node)
            elif isinstance(node, ast.Name | ast.Attribute):
                self._use(node, followed)
        strings = {
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.isidentifier()
        }
        return Imports(
            modules=tuple(dict.fromkeys(self.modules)),
            members=tuple(dict.fromkeys(self.members)),
            strings=frozenset(strings),
            opaque=tuple(dict.fromkeys(self.reasons)),
        )

    def _origins(self) -> Iterator[tuple[str, str]]:
        """Yield each local name that an import binds, and what it stands for."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.partition(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (root, root)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"

    def _dotted(self, node: ast.expr) -> str:
        """Return the full name of an expression such as ``importlib.import_module``."""
        if isinstance(node, ast.Name):
            return self.origins.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def _import_from(self, node: ast.ImportFrom) -> None:
        name = self._absolute("." * node.level + (node.module or ""), self.package)
        if name is None:
            self._cannot_follow(node, "a relative import outside a package")
            return
        self.modules.append(name)
        self.members += [(name, alias.name) for alias in node.names]

    def _import_by_name(self, node: ast.Call) -> None:
        name = self._literal(node, 0, "name")
        if name is None:
            self._cannot_follow(
                node, f"{ast.unparse(node)}, whose argument is not a literal"
            )
            return
        anchor: str | None = self.package
        if name.startswith(".") and (len(node.args) > 1 or node.keywords):
            given = ast.unparse([*node.args, *(k.value for k in node.keywords)][1])
            # These two stand for the module's own package, which is known.
            if given not in ("__package__", "__name__"):
                anchor = self._literal(node, 1, "package")
        full = None if anchor is None else self._absolute(name, anchor)
        if full is None:
            self._cannot_follow(node, f"{ast.unparse(node)}, a relative import")
        else:
            self.modules.append(full)

    @staticmethod
    def _literal(node: ast.Call, position: int, keyword: str) -> str | None:
        values = node.args[position : position + 1]
        values = values or [k.value for k in node.keywords if k.arg == keyword]
        if values and isinstance(values[0], ast.Constant):
            value = values[0].value
            return value if isinstance(value, str) and value else None
        return None

    def _use(self, node: ast.Name | ast.Attribute, followed: set[int]) -> None:
        name = self._dotted(node)
        if name in RUNS_ANYTHING or (
            name in IMPORTS_BY_NAME and id(node) not in followed
        ):
            self._cannot_follow(node, name)

    def _cannot_follow(self, node: ast.expr | ast.stmt, what: str) -> None:
        self.reasons.append(
            f"{self.file}, line {node.lineno}, uses {what}, so the code that runs cannot be told from the file."
        )

    @staticmethod
    def _absolute(name: str, package: str) -> str | None:
        try:
            return importlib.util.resolve_name(name, package or None)
        except ImportError:
            return None
