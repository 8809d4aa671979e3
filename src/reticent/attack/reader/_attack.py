"""The attack of whoever holds the file: look for every record in it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Need, Scores, SealedTags
from reticent.attack._searched import Searched
from reticent.attack.boost import Boosting, calibrated_log_odds
from reticent.attack.reader._cells import best_cells, log_ratio
from reticent.attack.reader._search import search_file
from reticent.attack.regression._base import RegressionChallenge
from reticent.errors import InvalidInput
from reticent.pool import Pool, PredictionPool

__all__ = ["Reader"]

# It learns from single records and eleven numbers, as the other learned attacks do from answers.
SMALL = Boosting(steps=60, rate=0.08, leaves=8, leaf_share=0.01, leaf_rows=10)
# Records to learn from; more change nothing that eleven numbers could show.
MOST_ROWS = 40_000


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
        searched, file = challenge.searched, challenge.file
        # Whoever has the file asks a question of their own; without it, what the audit has asked must do.
        if file is not None and (
            searched is None or searched.smallest_group != self.smallest_group
        ):
            searched = search_file(file, smallest_group=self.smallest_group)
        if searched is None:
            raise InvalidInput(
                f"the attack {self.name!r} reads the product's file, but there is none; audit a product that can be saved, or leave the "
                "attack out."
            )
        return Scores(values=self._odds(searched, knowledge.tags, rng))

    def _odds(
        self, searched: Searched, sealed: SealedTags, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        odds = np.zeros(searched.records)
        for learn, tags, judge in sealed.folds(self.folds, rng=rng):
            chosen = best_cells(
                searched.cells,
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
            for trees in searched.trees:
                if trees.place in read:
                    odds[judge] += _tree_odds(trees.inputs, learn, tags, judge, rng)
        return odds


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
