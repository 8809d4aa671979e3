"""Whether running a generator again on neighbouring tables refutes the epsilon that is claimed of it."""

from reticent.evidence.measures.watched_claim import TrainingAgainstClaim

__all__ = ["GeneratorAgainstClaim"]


class GeneratorAgainstClaim(TrainingAgainstClaim):
    """The lower bound on epsilon from tables made with and without one person, against the claim."""

    label = "epsilon shown by running the generator again, against the claim"
    words = "the epsilon that running the generator again has shown"
    shown_by = "Running the generator again on tables that differ in one person"
