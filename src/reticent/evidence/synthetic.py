"""What is found out about a synthetic table beside the attacks on it, in counts and estimates: no record and no value stands here."""

from dataclasses import dataclass

from reticent.evidence._estimate import Estimate
from reticent.evidence.disclosure import Disclosure
from reticent.evidence.fidelity import (
    Correlations,
    Coverage,
    Marginals,
    RareCategories,
)
from reticent.evidence.privacy_loss import PrivacyLoss
from reticent.evidence.singling_out import SinglingOut
from reticent.evidence.transfer import PositiveRates, Transfer

__all__ = [
    "AttributeEvidence",
    "ColumnLeak",
    "ColumnShape",
    "DescribedTable",
    "IsolatedEvidence",
    "JudgeEvidence",
    "RecipeUse",
    "SyntheticEvidence",
    "UseEvidence",
]


@dataclass(frozen=True, kw_only=True)
class ColumnLeak:
    """How much the exact values of one column tell about membership.

    Parameters
    ----------
    name : str
        The column.
    is_number : bool
        Whether it holds numbers.
    accuracy : Estimate
        LTU accuracy of its exact values alone; the intervals hold together over all columns.
    rounded : Estimate or None
        The same after the column was put into at most 16 bins, in the synthetic table and for everybody; None if it has no more values than that.
    """

    name: str
    is_number: bool
    accuracy: Estimate
    rounded: Estimate | None

    @property
    def leaks(self) -> bool:
        """Whether the values tell members from others beyond chance."""
        return self.accuracy.low > 0.5


@dataclass(frozen=True, kw_only=True)
class IsolatedEvidence:
    """The strongest attack on the people whom nobody resembles.

    Parameters
    ----------
    share : float
        Share of all people, the most isolated by their distance to the auxiliary table.
    members, nonmembers : int
        How many of them are on either side.
    accuracy : Estimate
        LTU accuracy among them; the choice of the attack is paid for.
    """

    share: float
    members: int
    nonmembers: int
    accuracy: Estimate


@dataclass(frozen=True, kw_only=True)
class AttributeEvidence:
    """How well one column is guessed from the others by the nearest synthetic rows.

    Parameters
    ----------
    column : str
        The column.
    success : Disclosure
        Of members, of non-members, and of a guess that does not see the table.
    """

    column: str
    success: Disclosure


@dataclass(frozen=True, kw_only=True)
class DescribedTable:
    """What describes a synthetic table and decides nothing; each interval holds by itself.

    Parameters
    ----------
    rows : int
        People of either side, and synthetic rows, that were looked at: at least so many of each.
    names : tuple of str
        The columns in the order of the marginals: numbers first.
    loss : PrivacyLoss
        Adversarial accuracy of members and of non-members, and their difference.
    singling_out : SinglingOut
        Predicates that isolate one person.
    linkability : Disclosure or None
        Two halves of a person's columns put together; None if there is one column.
    inference : tuple of AttributeEvidence
        Columns guessed from the others.
    marginals : Marginals
        Histograms of columns and pairs, synthetic against non-members.
    correlations : Correlations or None
        Of numbers; None if there are fewer than two.
    rare : RareCategories
        Rare categories that the table has or lacks.
    coverage : Coverage
        Non-members with a synthetic row nearby.
    """

    rows: int
    names: tuple[str, ...]
    loss: PrivacyLoss
    singling_out: SinglingOut
    linkability: Disclosure | None
    inference: tuple[AttributeEvidence, ...]
    marginals: Marginals
    correlations: Correlations | None
    rare: RareCategories
    coverage: Coverage


@dataclass(frozen=True, kw_only=True)
class JudgeEvidence:
    """What one kind of model reaches after learning from the real and from the synthetic table.

    Parameters
    ----------
    judge : str
        The kind of model.
    transfer : Transfer
        Its areas under the curves on non-members.
    """

    judge: str
    transfer: Transfer


@dataclass(frozen=True, kw_only=True)
class UseEvidence:
    """Train on synthetic, test on real.

    Parameters
    ----------
    target : str
        The column that is predicted from all others.
    judges : tuple of JudgeEvidence
        What each kind of model reaches.
    positive : PositiveRates
        Share of the rarest class that enough people have, among the members and in the synthetic table.
    """

    target: str
    judges: tuple[JudgeEvidence, ...]
    positive: PositiveRates


@dataclass(frozen=True, kw_only=True)
class RecipeUse:
    """What tables are like that the same generator makes again of the same members, and what models learn from them. All intervals cover people and such tables.

    The audited table is not among them: whoever chose it among several would count the choice.

    Parameters
    ----------
    tables : int
        Tables that were made again.
    judges : tuple of JudgeEvidence
        What each kind of model reaches on average; empty if the target has many values.
    saved : Estimate or None
        Mean share of the errors of a constant answer that the model of the utility saves; None if the constant is never wrong.
    loss : PrivacyLoss or None
        Resemblance and privacy loss, means over these tables; None in dossiers that were written before this was looked at.
    """

    tables: int
    judges: tuple[JudgeEvidence, ...]
    saved: Estimate | None
    loss: PrivacyLoss | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnShape:
    """How the values of one column are spread over bins; bins of few people are joined with a neighbour.

    Parameters
    ----------
    name : str
        The column.
    real, synthetic : tuple of float
        Share of people, members and non-members together, and of synthetic rows in each bin. Bins follow the order of a number, and the frequency
        of a category.
    """

    name: str
    real: tuple[float, ...]
    synthetic: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class SyntheticEvidence:
    """What is known about a synthetic table beside the attacks.

    Parameters
    ----------
    rows : int
        Its rows.
    auxiliary : int
        Records of other people that attackers compare with.
    columns : tuple of ColumnLeak
        Its columns, those that tell most first.
    isolated : IsolatedEvidence or None
        The most isolated people; None if there are too few of them.
    shapes : tuple of ColumnShape
        How the columns are spread.
    described : DescribedTable or None
        What describes the table and decides nothing; None if there was nothing to compare.
    use : UseEvidence or None
        What models learn from it; None if the target has many values.
    recipe : RecipeUse or None
        The same of tables that its generator makes again; None if it was not run again.
    searched : int or None
        Evenly spaced rows of each longer table among which the nearest were looked for; None if neither table is longer.
    """

    rows: int
    auxiliary: int
    columns: tuple[ColumnLeak, ...]
    isolated: IsolatedEvidence | None = None
    shapes: tuple[ColumnShape, ...] = ()
    described: DescribedTable | None = None
    use: UseEvidence | None = None
    recipe: RecipeUse | None = None
    searched: int | None = None

    @property
    def leaking(self) -> tuple[ColumnLeak, ...]:
        """The columns whose exact values tell members from others."""
        return tuple(column for column in self.columns if column.leaks)
