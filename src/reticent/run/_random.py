"""Named, seeded random streams: one seed per run, one stream per stage."""

import hashlib

import numpy as np

__all__ = ["seed_for", "stream"]


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the random stream of one named stage of a run.

    Streams of different names are independent, so a new stage does not disturb the others.
    They are for splits, initialisation and attacks, never for noise that carries a guarantee.

    Parameters
    ----------
    seed : int
        The run's seed, at least 0.
    name : str
        The stage, for example ``"split"`` or ``"attack/loss"``.

    Returns
    -------
    numpy.random.Generator
        The same generator for the same arguments.

    Examples
    --------
    >>> stream(0, "split").integers(100) == stream(0, "split").integers(100)
    np.True_
    >>> stream(0, "split").random() == stream(0, "attack").random()
    False
    """
    digest = hashlib.sha256(name.encode()).digest()
    # 128 bits of the hash: names can be added for ever without two of them meeting. PCG64 is named, because NumPy may
    # change its default generator.
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def seed_for(seed: int, name: str) -> int:
    """Return an integer seed of a named stage, for libraries that take integers.

    Examples
    --------
    >>> seed_for(0, "train") == seed_for(0, "train")
    True
    """
    # Libraries take seeds of 32 bits, some of them signed.
    return int(stream(seed, name).integers(2**31 - 1))
