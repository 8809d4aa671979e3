"""What a verdict is about: which bytes were judged, by which rules, when and by whom."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from reticent._codec import encode
from reticent.evidence import AttackEvidence
from reticent.policy import Policy

__all__ = ["Access", "Binding", "access_of", "policy_digest"]

POLICY_DOMAIN = (
    b"reticent policy 1\0"  # so that no other digest can be taken for one of a policy
)
# Families of attacks that need every byte of the product.
HOLD_THE_FILE = ("looks inside", "reads the file", "compares rows")


class Access(StrEnum):
    """What whoever attacks the product can reach."""

    QUERIES = "queries"  # its answers
    FILE = "file"  # everything in it
    TRAINING = "training"  # every step of its training


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What ties a dossier to the product, the policy and the table that it speaks of.

    Parameters
    ----------
    made : str
        When the audit ended, in UTC. Two dossiers are equal whenever they were made.
    reticent : str
        Version of reticent.
    by : str
        Who ran it, as they say; empty if they do not.
    product : str
        SHA-256 of all files of the product (:func:`reticent.product.product_digest`); empty if it was not stored.
    policy : str
        SHA-256 of the rules.
    table : str
        Digest of the table, keyed with the owner's secret.
    access : tuple of Access
        What the attackers of the audit could reach: the verdict speaks of nobody who reaches more.
    """

    made: str = field(compare=False)
    reticent: str
    by: str
    product: str
    policy: str
    table: str
    access: tuple[Access, ...]


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 of what a policy says; comments and the order of keys in its file do not count."""
    text = json.dumps(encode(policy), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(POLICY_DOMAIN + text.encode()).hexdigest()


def access_of(
    attacks: Iterable[AttackEvidence], *, was_watched: bool
) -> tuple[Access, ...]:
    """Return what the attackers of an audit could reach."""
    access = [Access.QUERIES]
    if any(attack.family in HOLD_THE_FILE for attack in attacks):
        access.append(Access.FILE)
    if was_watched:
        access.append(Access.TRAINING)
    return tuple(access)
