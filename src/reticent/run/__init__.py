"""How work is carried out: randomness, threads, files. No word of the domain is in it."""

from reticent.run._random import seed_for, stream
from reticent.run._threads import one_thread
from reticent.run._write import write_text

__all__ = ["one_thread", "seed_for", "stream", "write_text"]
