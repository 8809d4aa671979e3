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
    TableRecords,
    TrainingAgainstClaim,
    TrainingAsStated,
    TruePositiveRate,
    UtilityScore,
)

__all__ = ["MEASURES", "TABLE_MEASURES"]

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

# Of a synthetic table, which is its own file.
TABLE_MEASURES: tuple[Measure, ...] = tuple(
    TableRecords() if measure.name == FileRecords.name else measure
    for measure in MEASURES
)
