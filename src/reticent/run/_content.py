"""What a result depends on, as hashes and texts, including what it depends on besides its arguments."""

import functools
import hashlib
import importlib.metadata
import json
import platform
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Content", "environment", "hash_of_folder"]

# The files of the package that take part in a result or in how it is shown.
SOURCE_SUFFIXES = frozenset({".py", ".toml", ".css", ".js", ".j2", ".html"})

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Content:
    """What a result depends on; two results of equal content are the same result.

    Contents are combined by adding them: ``table.content() + content_of(seed)``.

    Parameters
    ----------
    parts : tuple of str
        Hashes and texts; their order matters.
    opaque : tuple of str
        One reason for everything that cannot be hashed. A result that depends on such a thing
        must not be kept.

    Examples
    --------
    >>> (Content(("a",)) + Content(("b",))).parts
    ('a', 'b')
    >>> Content(("a",), opaque=("a lambda has no name.",)).hashable
    False
    """

    parts: tuple[str, ...]
    opaque: tuple[str, ...] = ()

    def __add__(self, other: "Content") -> "Content":
        reasons = dict.fromkeys((*self.opaque, *other.opaque))
        return Content((*self.parts, *other.parts), tuple(reasons))

    @property
    def hashable(self) -> bool:
        """Whether everything could be hashed."""
        return not self.opaque

    @property
    def digest(self) -> str:
        """The SHA-256 of all parts in hexadecimal."""
        # JSON keeps the borders between parts: ("ab", "c") and ("a", "bc") differ.
        text = json.dumps([self.parts, self.opaque])
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def environment() -> Content:
    """Return what every result depends on: Python, the installed libraries, reticent's own source.

    It is computed once per process, so that a file of reticent that changes during a run does not
    change the names of what the code in memory computes.

    Examples
    --------
    >>> environment().hashable
    True
    """
    distributions = set()
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata
        distributions.add(f"{metadata['Name']}=={metadata['Version']}".lower())
    return Content(
        (
            f"python=={platform.python_implementation()} {platform.python_version()}",
            # In the order of names: the order on the search path says nothing.
            *sorted(distributions),
            f"reticent's source: {hash_of_folder(PACKAGE)}",
        )
    )


def hash_of_folder(folder: Path) -> str:
    """Return one SHA-256 over the names and bytes of a package's source files.

    Compiled files and other traces of use do not count.
    """
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in SOURCE_SUFFIXES and path.is_file():
            name = path.relative_to(folder).as_posix()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            # No name holds a zero byte, so names and digests cannot be taken for each other.
            total.update(f"{name}\0{digest}\n".encode())
    return total.hexdigest()
