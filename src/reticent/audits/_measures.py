"""The measures that every kind of model has, in the order of the report: the registry."""

from reticent.evidence import (
    AttacksAgainstClaim,
    ClaimedEpsilon,
    Exposed,
    FileRecords,
    Gain,
    GeneratorAgainstClaim,
    GroupPrivacy,
    HeldOutPeople,
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
    HeldOutPeople(),
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

# Of a synthetic table, which is its own file, and whose generator is run again in place of watching its steps.
_OF_TABLES: dict[str, Measure] = {
    FileRecords.name: TableRecords(),
    TrainingAgainstClaim.name: GeneratorAgainstClaim(),
}
TABLE_MEASURES: tuple[Measure, ...] = tuple(
    _OF_TABLES.get(measure.name, measure) for measure in MEASURES
)
