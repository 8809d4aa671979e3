"""The critic of a generative adversarial network, turned against the people it was trained on.

References
----------
.. [1] Hayes, Melis, Danezis & De Cristofaro, "LOGAN: membership inference attacks against generative models", arXiv:1705.07663, Section 4.1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent.attack._base import Need, Scores
from reticent.attack.synthetic._base import SyntheticChallenge
from reticent.errors import InvalidInput

__all__ = ["CriticScore"]


@dataclass(frozen=True, kw_only=True)
class CriticScore:
    """Guess that a record was used if the critic takes it for real [1]_.

    A critic learns to tell real rows from made ones, and the real rows that it has seen are the members. It is run only if the critic would be
    released, or is otherwise at hand; by default it stays where the generator was trained.
    """

    name: str = "critic"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SYNTHETIC, Need.CRITIC})

    def score(
        self,
        challenge: SyntheticChallenge,
        *,
        knowledge: Any,
        rng: np.random.Generator,
    ) -> Scores:
        """Return what the critic says of each record."""
        if challenge.critic is None:
            raise InvalidInput(
                f"the attack {self.name!r} asks the critic of a generator, but there is none; leave the attack out."
            )
        return Scores(values=challenge.critic)
