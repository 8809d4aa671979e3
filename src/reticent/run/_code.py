"""The user's own code that a name or an object reaches: its files, hashed."""

import functools
import hashlib
import importlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from reticent.run._content import PACKAGE, Content
from reticent.run._imports import imports_of

__all__ = ["code_of", "from_library", "why_not_retrievable"]

# Where installed distributions live; Debian has a name of its own for it.
SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})


def code_of(name_or_object: object) -> Content:
    """Return the content of the user's own code that a name or an object reaches.

    The file of its module counts, and so does the file of every user module that this one
    reaches by import: at the top or inside a function, relative or absolute, through packages, and through the objects
    in the namespace of the module. The standard library and installed distributions add nothing, because
    :func:`environment` holds their versions, nor does reticent, whose source is hashed there. A
    distribution installed in editable form counts as the user's own code.

    What code reads while it runs (data files, environment variables, values set from outside) is
    not code and is not followed.

    Parameters
    ----------
    name_or_object : object
        The name of a module, ``"module:function"``, a module, class or function; the class of
        anything else.

    Returns
    -------
    Content
        One part per module; opaque where code is reached in a way that cannot be followed.

    Examples
    --------
    >>> code_of("json").parts
    ()
    >>> code_of("no_such_module").opaque
    ("the module 'no_such_module' cannot be found.",)
    """
    if isinstance(name_or_object, str):
        return _reached([name_or_object.partition(":")[0]])
    if isinstance(name_or_object, ModuleType):
        return _reached([name_or_object.__name__])
    if isinstance(name_or_object, FunctionType):
        reason = why_not_retrievable(name_or_object)
        if reason:
            return Content((), (reason,))
        return _reached([name_or_object.__module__, _module_of_code(name_or_object)])
    kind = name_or_object if isinstance(name_or_object, type) else type(name_or_object)
    # Inherited methods run too, so the modules of all base classes count.
    return _reached([base.__module__ for base in kind.__mro__])


def why_not_retrievable(function: FunctionType) -> str:
    """Return why the code of a function cannot be found in a file; empty if it can."""
    name, module = function.__qualname__, function.__module__
    if function.__name__ == "<lambda>":
        return (
            f"a lambda in {module} has no name by which its code could be told from another's; "
            "write it as a function in a module."
        )
    if module is None or not _module_of_code(function):
        return (
            f"the function {name!r} of {module} was not read from the file of a module, so its code cannot be hashed; "
            "put it into a module."
        )
    return ""


def _module_of_code(function: FunctionType) -> str:
    """Return the module whose file contains the code of a function; empty if there is none.

    A decorated function may carry the name of one module and run the code of another.
    """
    if function.__module__ and from_library(function.__module__):
        return function.__module__
    file = function.__code__.co_filename
    # Its own module first: several modules may share one file.
    for name in (function.__module__, *sys.modules):
        if getattr(sys.modules.get(name), "__file__", None) == file:
            return name
    return ""


def from_library(module: str) -> bool:
    """Return whether a module belongs to Python, to an installed distribution or to reticent."""
    location = _locate(module)
    return location is not None and location.from_library


# --- where a module is ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Location:
    """Where a module was or would be loaded from.

    Parameters
    ----------
    file : Path or None
        File of the module; None for built-in modules, namespace packages and modules created in memory.
    search : list of str or None
        Folders in which its submodules are searched; None if it is not a package.
    package : str
        What its relative imports are relative to.
    from_library : bool
        Whether the recorded versions or the hash of reticent's source cover it.
    """

    file: Path | None
    search: list[str] | None
    package: str
    from_library: bool


def _locate(name: str) -> _Location | None:
    """Return where a module is, without importing it or its packages; None if nowhere."""
    module = sys.modules.get(name)
    if module is not None:
        file, search = getattr(module, "__file__", None), _search_path(module)
        package = getattr(module, "__package__", None)
    else:
        spec = _find_spec(name)
        if spec is None:
            return None
        file = spec.origin if spec.has_location else None
        search = (
            None
            if spec.submodule_search_locations is None
            else list(spec.submodule_search_locations)
        )
        package = spec.parent
    if not isinstance(package, str):
        package = name if search is not None else name.rpartition(".")[0]
    path = Path(file) if isinstance(file, str) else None
    return _Location(
        file=path,
        search=search,
        package=package,
        from_library=_file_is_covered(path) if path else _name_is_covered(name),
    )


def _search_path(module: ModuleType) -> list[str] | None:
    search = getattr(module, "__path__", None)
    return None if search is None else [str(folder) for folder in search]


def _find_spec(name: str) -> Any:
    """Ask the finders as an import would, but execute no package on the way."""
    parent = name.rpartition(".")[0]
    search = None
    if parent:
        location = _locate(parent)
        if location is None or location.search is None:
            return None
        search = location.search
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, search)
        except Exception:  # a finder of somebody else's that cannot answer
            continue
        if spec is not None:
            return spec
    return None


def _name_is_covered(name: str) -> bool:
    """Return whether a module without a file is part of Python or of a covered package."""
    root = name.partition(".")[0]
    # The script that runs is never part of Python, whatever Python's list says.
    if root in sys.stdlib_module_names and root != "__main__":
        return True
    location = _locate(root) if root != name else None
    return location is not None and location.from_library


@functools.cache
def _file_is_covered(path: Path) -> bool:
    file = path.resolve()
    if file.is_relative_to(PACKAGE):
        return True
    for folder in file.parents:
        if folder.name in SITE_FOLDERS:
            top = file.relative_to(folder).parts[0].partition(".")[0]
            return (folder, top) in _installed()
    return any(
        file.is_relative_to(Path(sysconfig.get_path(kind)).resolve())
        for kind in ("stdlib", "platstdlib")
    )


@functools.cache
def _installed() -> frozenset[tuple[Path, str]]:
    """Return the top-level names of all distributions, each with the folder it is installed in.

    A file that somebody put into such a folder by hand has no version, so it is not covered.
    """
    names = set()
    for distribution in importlib.metadata.distributions():
        folder = Path(str(distribution.locate_file(""))).resolve()
        record = distribution.read_text("RECORD") or ""
        top_level = distribution.read_text("top_level.txt") or ""
        for line in (*record.splitlines(), *top_level.splitlines()):
            first = line.partition(",")[0].partition("/")[0]
            names.add((folder, first.partition(".")[0]))
    return frozenset(names)


# --- what a module reaches -----------------------------------------------------------------

# The digest of the file of each loaded module when it was first looked at, and the specification
# that each (re)load replaces. This mirrors `sys.modules`, which is one per process too.
_DIGEST_AT_LOAD: dict[str, tuple[object, str]] = {}


def _reached(names: Iterable[str]) -> Content:
    """Hash every user module that can be reached from the named ones."""
    first = [name for name in dict.fromkeys(names) if not from_library(name)]
    if not first:
        return Content(())
    # Finders remember what folders held; a module written since then must be found.
    importlib.invalidate_caches()
    reasons = [
        f"the module {name!r} cannot be found." for name in first if not _locate(name)
    ]
    hashes: dict[str, str] = {}
    waiting = [part for name in first for part in _with_packages(name)]
    while waiting:
        name = waiting.pop()
        if name in hashes or from_library(name.partition(".")[0]):
            continue
        location = _locate(name)
        if location is None:
            # If it appears one day, the code that tries to import it will behave differently.
            hashes[name] = "absent"
        elif not location.from_library:
            hashes[name], imports, opaque = _look_at(name, location)
            waiting += imports
            reasons += opaque
    parts = sorted(f"{name}: {digest}" for name, digest in hashes.items() if digest)
    return Content(tuple(parts), tuple(dict.fromkeys(reasons)))


def _look_at(name: str, location: _Location) -> tuple[str, list[str], list[str]]:
    """Return the hash of a module's file, what it imports and why it cannot be followed."""
    module = sys.modules.get(name)
    if location.file is None:
        if location.search is not None:  # a namespace package has no code
            return "", [], []
        return "", [], [f"the module {name!r} has no file that could be hashed."]
    try:
        source = location.file.read_bytes()
    except OSError as error:
        problem = error.strerror or error
        return "", [], [f"{location.file} cannot be read ({problem})."]
    digest = hashlib.sha256(source).hexdigest()
    reasons = []
    if module is not None:
        spec = getattr(module, "__spec__", None)
        earlier, digest_at_load = _DIGEST_AT_LOAD.get(name, (None, digest))
        # Another specification means that the module was reloaded, and runs the file as it is now.
        if earlier is not spec:
            digest_at_load = digest
        _DIGEST_AT_LOAD[name] = (spec, digest_at_load)
        if digest_at_load != digest:
            reasons.append(
                f"{location.file} was changed after it was imported, so the code that runs is not the code in "
                "the file; start again."
            )
    names = [] if module is None else list(_in_namespace(module))
    if not location.file.name.endswith(tuple(EXTENSION_SUFFIXES)):
        # of an extension, its bytes are all there is to see
        imports = imports_of(source, str(location.file), location.package)
        names += imports.modules
        names += [name for pair in imports.members for name in _submodules(*pair)]
        reasons += imports.opaque
    return digest, [part for name in names for part in _with_packages(name)], reasons


def _with_packages(name: str) -> list[str]:
    """Return the names of a module and of the packages that contain it, all of which an import runs."""
    pieces = name.split(".")
    return [".".join(pieces[: k + 1]) for k in range(len(pieces))]


def _submodules(module: str, member: str) -> list[str]:
    """Return the modules that ``from module import member`` imports beside ``module``."""
    location = _locate(module)
    if location is None or location.from_library or location.search is None:
        return []
    members = [member]
    if member == "*":  # then a package imports the submodules that its __all__ lists
        if location.file is None or not location.file.is_file():
            return []
        source = location.file.read_bytes()
        listed = imports_of(source, str(location.file), location.package).strings
        members = sorted(listed)
    names = [f"{module}.{name}" for name in members]
    return [name for name in names if _locate(name) is not None]


def _in_namespace(module: ModuleType) -> Iterator[str]:
    """Yield the modules of the objects in the namespace of a loaded module."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value.__name__
        else:
            kind = value if isinstance(value, FunctionType | type) else type(value)
            if isinstance(kind.__module__, str):
                yield kind.__module__
