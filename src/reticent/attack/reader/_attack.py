"""The attack of whoever holds the file: look for every record in it."""

import weakref
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Need, Scores, SealedTags
from reticent.attack.boost import Boosting, calibrated_log_odds
from reticent.attack.reader._cells import Cell, best_cells, log_ratio
from reticent.attack.reader._midpoints import midpoint_cells
from reticent.attack.reader._rows import row_cells
from reticent.attack.reader._trees import TreeEvidence, tree_evidence
from reticent.attack.reader._values import value_cells, word_cells
from reticent.attack.regression._base import RegressionChallenge
from reticent.errors import InvalidInput
from reticent.pool import Pool, PredictionPool
from reticent.product import OpenedFile

__all__ = ["Evidence", "Reader", "evidence_of"]

# It learns from single records and eleven numbers, as the other learned attacks do from answers.
SMALL = Boosting(steps=60, rate=0.08, leaves=8, leaf_share=0.01, leaf_rows=10)
# Records to learn from; more change nothing that eleven numbers could show.
MOST_ROWS = 40_000
# Bytes of what is remembered of one file: an audit attacks a file and then counts what it holds, and looking for every record
# is half of the time of an audit of a forest. More would count against the memory that an audit may use.
MOST_REMEMBERED = 50_000_000


@dataclass(frozen=True, kw_only=True)
class Reader:
    r"""Score each record by how well it is found in the product's file.

    The file is walked without building anything from it (:func:`reticent.product.read_contents`). Each record is looked for as it is and as
    every step of the product's own preparation sees it:

    - whole rows, also in single or half precision, in another order, transposed, flattened, with some of the columns, or with columns
      scaled and shifted; nearly equal rows by their distance;
    - values, texts and tokens that fewer than ``smallest_group`` people share;
    - borders of bins and thresholds of trees, which lie halfway between two members: :math:`x_a + x_b = 2t`;
    - thresholds by their distance, because no member lies between a threshold and the ends of its gap, wherever in it the threshold stands;
    - leaves of trees, by the room that they have for the candidates in them, and by answers that are a record's own target.

    Each place of the file gives every record a category. What a category tells about membership is learned from the tags of other people and
    never from the record's own: the log ratio of the shares of members and of non-members in it. Coincidences of coarse tables befall both
    alike and cancel. Of places that tell members from non-members in the training folds (at a joint chance of ``false_alarm``), the
    best ``most_cells`` are added; the eleven numbers of a forest are combined by boosted trees.

    Parameters
    ----------
    smallest_group : int
        A value that as many people share is nobody's own.
    folds : int
        Number of folds.
    most_cells : int
        Largest number of places whose evidence is added.
    false_alarm : float
        Chance, in each fold, that a file which tells nothing gets any place chosen.
    """

    name: str = "reader"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.FILE})
    smallest_group: int = 20
    folds: int = 5
    most_cells: int = 5
    false_alarm: float = 0.01

    def score(
        self,
        challenge: Challenge | RegressionChallenge,
        *,
        knowledge: Knowledge[Pool] | Knowledge[PredictionPool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership of each record, cross-fitted."""
        if challenge.file is None:
            raise InvalidInput(
                f"the attack {self.name!r} reads the product's file, but there is none; audit a product that can be saved, or leave the "
                "attack out."
            )
        evidence = evidence_of(challenge.file, smallest_group=self.smallest_group)
        return Scores(values=self._odds(evidence, knowledge.tags, rng))

    def _odds(
        self, evidence: "Evidence", sealed: SealedTags, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        odds = np.zeros(evidence.records)
        for learn, tags, judge in sealed.folds(self.folds, rng=rng):
            chosen = best_cells(
                evidence.cells,
                learn,
                tags,
                most=self.most_cells,
                false_alarm=self.false_alarm,
            )
            for cell in chosen:
                if cell.kind != "trees":
                    odds[judge] += log_ratio(
                        cell.categories[learn], tags, cell.categories[judge]
                    )
            read = {cell.place for cell in chosen if cell.kind == "trees"}
            for trees in evidence.trees:
                if trees.place in read:
                    odds[judge] += _tree_odds(trees.inputs, learn, tags, judge, rng)
        return odds


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that a file says about the records beside it.

    Parameters
    ----------
    cells : tuple of Cell
        One per place and stage, those of the trees included.
    trees : tuple of TreeEvidence
        One per place with trees.
    records : int
        Number of records.
    """

    cells: tuple[Cell, ...]
    trees: tuple[TreeEvidence, ...]
    records: int

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        cells = (c.categories.nbytes + c.found.nbytes for c in self.cells)
        return sum(cells) + sum(entry.inputs.nbytes for entry in self.trees)


def evidence_of(file: OpenedFile, *, smallest_group: int) -> Evidence:
    """Return everything that a file says about the records beside it.

    Parameters
    ----------
    file : OpenedFile
        The file laid beside the records.
    smallest_group : int
        A value that as many people share is nobody's own.
    """
    key = (id(file), smallest_group)
    if key in _remembered:
        return _remembered[key]
    evidence = _looked_for(file, smallest_group)
    if evidence.nbytes <= MOST_REMEMBERED:
        _remembered[key] = evidence
        # The number of an object is given to another one after its end.
        weakref.finalize(file, _remembered.pop, key, None)
    return evidence


_remembered: dict[tuple[int, int], Evidence] = {}


def _looked_for(file: OpenedFile, smallest_group: int) -> Evidence:
    # The numbers are a stranger's. What overflows is no record, and needs no warning.
    with np.errstate(all="ignore"):
        rows, copies = row_cells(file)
        values = value_cells(file, smallest_group=smallest_group, without=copies)
        words = word_cells(file, smallest_group=smallest_group)
        midpoints = midpoint_cells(file)
        trees = tree_evidence(file)
    in_trees = (cell for entry in trees for cell in entry.cells)
    return Evidence(
        cells=(*rows, *values, *words, *midpoints, *in_trees),
        trees=tuple(trees),
        records=len(file),
    )


def _tree_odds(
    inputs: NDArray[np.float64],
    learn: NDArray[np.int64],
    tags: NDArray[np.bool_],
    judge: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    if len(learn) > MOST_ROWS:
        chosen = rng.choice(len(learn), MOST_ROWS, replace=False)
        learn, tags = learn[chosen], tags[chosen]
    return calibrated_log_odds(SMALL, inputs[learn], tags, inputs[judge], rng=rng)
