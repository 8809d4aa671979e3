"""How work is carried out: randomness, workers, time, and stored results. It knows nothing about the domain."""

from reticent.run._clock import now
from reticent.run._cluster import Cluster
from reticent.run._code import code_of
from reticent.run._codec import pack, unpack
from reticent.run._content import Content, environment
from reticent.run._effort import Effort
from reticent.run._own import named_by_user
from reticent.run._owner import KEYED, has_owner_key, keyed, owner_folder
from reticent.run._processes import Processes, workers_of
from reticent.run._random import seed_for, stream
from reticent.run._read import read_text
from reticent.run._run import GIGABYTE, Progress, Run, quiet, silent
from reticent.run._store import Store
from reticent.run._threads import one_thread
from reticent.run._timetable import Timetable, Work, timetable
from reticent.run._values import content_of, content_of_fields
from reticent.run._workers import Serial, Workers, can_travel
from reticent.run._write import open_folder, write_bytes, write_text

__all__ = [
    "GIGABYTE",
    "KEYED",
    "Cluster",
    "Content",
    "Effort",
    "Processes",
    "Progress",
    "Run",
    "Serial",
    "Store",
    "Timetable",
    "Work",
    "Workers",
    "can_travel",
    "code_of",
    "content_of",
    "content_of_fields",
    "environment",
    "has_owner_key",
    "keyed",
    "named_by_user",
    "now",
    "one_thread",
    "open_folder",
    "owner_folder",
    "pack",
    "quiet",
    "read_text",
    "seed_for",
    "silent",
    "stream",
    "timetable",
    "unpack",
    "workers_of",
    "write_bytes",
    "write_text",
]
