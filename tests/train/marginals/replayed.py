"""Replay a fit on a neighbouring table with the answers that were released: then nothing differs but what the records are asked."""

from dataclasses import dataclass, field

import numpy as np

from reticent.account import Relation
from reticent.data import table_from_frame
from reticent.run import Run, stream
from reticent.train.marginals.noise import Noise


class Recorder(Noise):
    """Notes every exact answer, and what it is protected with, beside the noisy answer that is released."""

    def __init__(self, seed, forced=None):
        super().__init__(stream(seed, "recorder"))
        self.__dict__.update(questions=[], answers=[], forced=forced)

    def _released(self, make):
        answer = make() if self.forced is None else self.forced[len(self.answers)]
        self.answers.append(answer)
        return answer

    def on_counts(self, counts, deviation):
        self.questions.append(("counts", np.array(counts), deviation))
        return self._released(lambda: Noise.on_counts(self, counts, deviation))

    def choose(self, scores, epsilon):
        self.questions.append(("scores", np.array(scores), epsilon))
        return self._released(lambda: Noise.choose(self, scores, epsilon))


@dataclass
class Moved:
    """How far the answers of two neighbouring tables lie apart, and what else differs."""

    squares: float = 0.0  # sum over all counts of (distance / deviation)^2
    score: float = 0.0  # largest move of a score
    choices: int = 0
    differs: list = field(default_factory=list)

    def breaks(self, budget, relation):
        """Return what exceeds the budget."""
        parts = [part for part, _ in budget.mechanism(relation).parts]
        allowed = 2.0 if relation == Relation.REPLACE else 1.0
        found = list(self.differs)
        if self.squares > parts[0].mu ** 2 * (1 + 1e-9):
            found.append("counts")
        if self.score > allowed:
            found.append("scores")
        if self.choices > budget.choices:
            found.append("choices")
        return found


def fitted_frame(generator, frame, noise, patch):
    patch.setattr(Noise, "seeded", classmethod(lambda cls, seed: noise))
    table = table_from_frame(frame, target=None)
    made, _ = generator.fit(table, run=Run(seed=3)).sample(seed=3)
    return made


def moved_between(generator, frame, neighbour, patch, *, seed):
    """Fit on a table, replay on a neighbour, and return how far all answers moved.

    Whatever reaches the released rows without noise makes them differ, although all noisy answers are the same.
    """
    first = Recorder(seed)
    made = fitted_frame(generator, frame, first, patch)
    second = Recorder(seed, forced=first.answers)
    result = Moved()
    try:
        again = fitted_frame(generator, neighbour, second, patch)
    except Exception as error:  # other questions were asked, and the answers do not fit
        result.differs.append(f"questions ({type(error).__name__})")
        return result
    if not made.equals(again):
        result.differs.append("rows")
    if len(first.questions) != len(second.questions):
        result.differs.append("questions")
    for (kind, a, paid), (_, b, paid_too) in zip(
        first.questions, second.questions, strict=False
    ):
        if paid != paid_too or a.shape != b.shape:
            result.differs.append("questions")
            break
        if kind == "counts":
            result.squares += float(((a - b) ** 2).sum()) / paid**2
        else:
            result.score = max(result.score, float(np.abs(a - b).max()))
            result.choices += 1
    return result
