"""The measures that audits take and policies limit: one file each."""

from reticent.evidence.measures._base import Claim, Measure, Seen
from reticent.evidence.measures.as_stated import TrainingAsStated
from reticent.evidence.measures.claim import AttacksAgainstClaim
from reticent.evidence.measures.claimed_epsilon import ClaimedEpsilon
from reticent.evidence.measures.exposed import Exposed
from reticent.evidence.measures.file_records import FileRecords
from reticent.evidence.measures.gain import Gain
from reticent.evidence.measures.group_privacy import GroupPrivacy
from reticent.evidence.measures.held_out_people import HeldOutPeople
from reticent.evidence.measures.insider_privacy import InsiderPrivacy
from reticent.evidence.measures.privacy import Privacy
from reticent.evidence.measures.proven_claim import ProofAgainstClaim
from reticent.evidence.measures.rerun_claim import GeneratorAgainstClaim
from reticent.evidence.measures.table_records import TableRecords, people, readable
from reticent.evidence.measures.tpr import TruePositiveRate
from reticent.evidence.measures.utility import UtilityScore
from reticent.evidence.measures.watched_claim import TrainingAgainstClaim

__all__ = [
    "AttacksAgainstClaim",
    "Claim",
    "ClaimedEpsilon",
    "Exposed",
    "FileRecords",
    "Gain",
    "GeneratorAgainstClaim",
    "GroupPrivacy",
    "HeldOutPeople",
    "InsiderPrivacy",
    "Measure",
    "Privacy",
    "ProofAgainstClaim",
    "Seen",
    "TableRecords",
    "TrainingAgainstClaim",
    "TrainingAsStated",
    "TruePositiveRate",
    "UtilityScore",
    "people",
    "readable",
]
