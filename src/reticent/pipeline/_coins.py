"""Who is held out from a generator: a coin for each person, which only the owner's key can throw again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.data import Finding, Severity, Table, as_frame, table_from_frame
from reticent.errors import InvalidInput
from reticent.pipeline._tables import GivenTables
from reticent.product import Provenance, table_digest
from reticent.run import has_owner_key, keyed, owner_folder

__all__ = ["HELD_OUT", "HeldOut", "Seal", "with_people_held_out"]

HELD_OUT = "held out"  # how a table says that people were held out by coins
NAME_DIGITS = 32  # 128 bits: the names of two divisions never agree by chance
OTHERWISE = "name people whom its generator never saw with --holdout, or mark them in a column and name it with --part"
FOUND_AGAIN = Finding(
    name="held_out_again",
    severity=Severity.NOTE,
    text="the people whom the generator never saw are those whom reticent held out when it made the synthetic table: the owner's key tells who they are, "
    "and both tables are the same as then.",
)


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A division of people into those whom a generator sees and those whom it does not: by a coin each, thrown by the owner's key.

    Parameters
    ----------
    share : float
        Probability that a person is held out.
    name : str
        Tells this division from others. It may be known to everybody: without the owner's key it says nothing about who is held out.
    """

    share: float
    name: str

    @classmethod
    def by_seed(cls, share: float, *, seed: int) -> "HeldOut":
        """Return the division of a seed, whose name does not give the seed away."""
        digest = keyed(f"{seed} {share!r}", about="name of a division")
        return cls(share=share, name=digest.rpartition(":")[2][:NAME_DIGITS])

    def members(self, table: Table) -> NDArray[np.bool_]:
        """Return which records a generator may use; all records of a person fall on one side."""
        digest = keyed(f"{self.name} {self.share!r}", about="who is held out")
        coins = np.random.default_rng(int(digest.rpartition(":")[2], 16))
        people, person_of_row = np.unique(table.units, return_inverse=True)
        is_member = coins.random(len(people)) >= self.share
        return np.asarray(is_member[person_of_row], dtype=np.bool_)


@dataclass(frozen=True, kw_only=True)
class Seal:
    """Ties a division to the table that was divided and to the file that was made from it, so that the division cannot be passed off as that of another file.

    Parameters
    ----------
    held_out : HeldOut
        The division.
    fingerprint : str
        Hash of the real table. It never leaves the house.
    """

    held_out: HeldOut
    fingerprint: str

    def split(self, file_digest: str) -> dict[str, str]:
        """Return what is written beside a synthetic table of a given digest: names and a keyed digest, the same whoever was held out."""
        share, name = repr(self.held_out.share), self.held_out.name
        content = f"{self.fingerprint} {file_digest} {name} {share}"
        seal = keyed(content, about="division, table and synthetic table")
        return {"by": HELD_OUT, "share": share, "division": name, "seal": seal}


def with_people_held_out(given: GivenTables) -> GivenTables:
    """Return the tables of an audit with the people whom ``reticent synthesize`` held out, if nobody says who the others are.

    Nothing of the file beside the synthetic table is believed: the owner's key must have sealed it for this real and this synthetic table. Else
    whoever can write that file could let members pass for people whom the generator never saw, and attacks would find nothing.

    Parameters
    ----------
    given : GivenTables
        The tables, as a caller has them; the real one is the whole table.

    Raises
    ------
    InvalidInput
        If people were held out, but the owner's key is missing or does not vouch for these tables.
    """
    stated = given.synthetic.provenance
    if given.has_others or given.real is None or stated.split.get("by") != HELD_OUT:
        return given
    if not has_owner_key():
        raise InvalidInput(
            f"people were held out when the synthetic table was made, but the owner's key that tells who they are is not in {owner_folder()}; audit where the "
            f"table was made, or {OTHERWISE}."
        )
    frame = as_frame(given.real, name="real").rename(columns=str)
    table = table_from_frame(
        frame,
        target=None,
        unit=given.unit,
        schema=given.schema,
        name="the real table",
        drop=given.drop,
    )
    is_member = _sealed(stated, table, given.synthetic.file_digest).members(table)
    return replace(
        given,
        real=frame.iloc[table.ids[is_member]],
        holdout=frame.iloc[table.ids[~is_member]],
        findings=(*given.findings, FOUND_AGAIN),
    )


def _sealed(stated: Provenance, table: Table, file_digest: str) -> HeldOut:
    """Return the division that the file beside a synthetic table names, if the owner's key sealed it.

    Raises
    ------
    InvalidInput
        If it did not.
    """
    if stated.data_fingerprint != table_digest(table, seed=None):
        raise InvalidInput(
            "the real table is not the one that the synthetic table was made from, or is read differently, or was divided with another owner's key, so it is not "
            "known who was held out; bring the same table with the same --unit, --drop and --schema as for reticent synthesize, or "
            f"{OTHERWISE}."
        )
    seal = Seal(held_out=_stated_division(stated.split), fingerprint=table.fingerprint)
    if not file_digest or seal.split(file_digest) != dict(stated.split):
        raise InvalidInput(
            "the synthetic table or the file beside it is not as reticent synthesize wrote it, so it is not known for sure who was held out; audit "
            f"the file as it was written, or {OTHERWISE}."
        )
    return seal.held_out


def _stated_division(split: Mapping[str, str]) -> HeldOut:
    """Return the division that a file names; what is no division has no name, and no seal fits it."""
    try:
        return HeldOut(share=float(split["share"]), name=split["division"])
    except (KeyError, ValueError):
        return HeldOut(share=0.0, name="")
