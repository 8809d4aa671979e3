"""The measures that every kind of model has, in the order of the report: the registry."""

from reticent.evidence import (
    AttacksAgainstClaim,
    ClaimedEpsilon,
    Exposed,
    FileRecords,
    Gain,
    GroupPrivacy,
    InsiderPrivacy,
    Measure,
    Privacy,
    ProofAgainstClaim,
    TrainingAgainstClaim,
    TrainingAsStated,
    TruePositiveRate,
    UtilityScore,
)

__all__ = ["MEASURES"]

MEASURES: tuple[Measure, ...] = (
    Privacy(),
    TruePositiveRate(),
    Exposed(),
    FileRecords(),
    GroupPrivacy(),
    InsiderPrivacy(),
    UtilityScore(),
    Gain(),
    ClaimedEpsilon(),
    ProofAgainstClaim(),
    AttacksAgainstClaim(),
    TrainingAgainstClaim(),
    TrainingAsStated(),
)
