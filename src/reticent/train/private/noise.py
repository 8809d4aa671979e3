"""Where noise comes from: system entropy for what is released, seeds for experiments.

A generator of the first kind is the block cipher AES-128 in counter mode, with a key of 128 bits from
the operating system that is never shown or stored: nobody can draw the same noise again, and so
nobody can subtract it. Seeded noise can be drawn again by everyone who knows the seed, and protects nothing.
"""

import secrets

import numpy as np
from randomgen import AESCounter

__all__ = ["secure_generator"]


def secure_generator() -> np.random.Generator:
    """Return a cryptographic generator with a fresh secret key.

    Examples
    --------
    >>> bool(secure_generator().random() != secure_generator().random())
    True
    """
    # `key` is used unchanged; a `seed` would be expanded by a generator that is not cryptographic.
    return np.random.Generator(AESCounter(key=secrets.randbits(128)))
