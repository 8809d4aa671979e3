"""A measure of somebody else's, which a policy may limit."""

from reticent.evidence import Estimate, Measure


class Loudness(Measure):
    """How far the mean score of members lies above that of non-members, in an attack of one's own."""

    name = "loudness"
    label = "loudness of members"
    better = "lower"
    bounds = (0.0, 2.0)

    def measure(self, seen, *, limit, rng):
        scores = seen.scores["margin"]
        apart = float(scores.members.mean() - scores.nonmembers.mean())
        error = (
            3
            * (
                scores.members.var() / len(scores.members)
                + scores.nonmembers.var() / len(scores.nonmembers)
            )
            ** 0.5
        )
        estimate = Estimate(
            value=apart,
            low=apart - error,
            high=apart + error,
            level=seen.level,
            method="three standard errors",
        )
        return self.statement("the loudness", estimate, limit=limit, seen=seen)
