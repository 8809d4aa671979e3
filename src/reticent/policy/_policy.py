"""The rules of release, written down before the audit."""

import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidPolicy

__all__ = ["SHIPPED", "THREATS", "Limits", "Policy", "read_policy"]

SHIPPED = ("default", "strict")
THREATS = ("outsider", "insider")
KNOWN_ATTACKS = (
    "loss",
    "confidence",
    "entropy",
    "modified_entropy",
    "learned_outputs",
    "gap",
    "population",
    "quantile",
    "gradient_norm",
    "learned_white_box",
    "lira",
    "lira_offline",
    "rmia",
    "shadow",
    "combined_pool",
    "retraining",
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on what an audit may find; ``None`` means that nothing is asked.

    Parameters
    ----------
    privacy_at_least : float or None
        Smallest privacy score against the best attack of the outsider.
    tpr_at_most : float or None
        Largest true-positive rate at the false-positive rate ``tpr_at_fpr``.
    tpr_at_fpr : float
        That false-positive rate.
    exposed_share_at_most : float or None
        Largest share of members whose individual privacy is below ``exposed_below``.
    exposed_below : float
        That individual privacy.
    utility_at_least : float or None
        Smallest utility score.
    claimed_epsilon_at_most : float or None
        Largest epsilon a product may claim; a product that claims none is then inconclusive.
    group_privacy_at_least : float or None
        Smallest privacy score of the worst group.
    insider_privacy_at_least : float or None
        Smallest privacy score against the retraining insider, where the policy decides on it.
    """

    privacy_at_least: float | None = None
    tpr_at_most: float | None = None
    tpr_at_fpr: float = 0.001
    exposed_share_at_most: float | None = None
    exposed_below: float = 0.1
    utility_at_least: float | None = None
    claimed_epsilon_at_most: float | None = None
    group_privacy_at_least: float | None = None
    insider_privacy_at_least: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InvalidPolicy(
                    f"the limit {field.name} is {value!r}, which is not a number; write for example 0.9."
                )
            largest = float("inf") if "epsilon" in field.name else 1.0
            if not 0 <= value <= largest:
                raise InvalidPolicy(
                    f"the limit {field.name} is {value}, outside [0, {largest:g}], so it could never decide "
                    "anything; correct it."
                )


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What must hold before a product is released.

    Parameters
    ----------
    name : str
        How reports call it.
    decides_on : tuple of str
        The threat models that count: ``"outsider"``, ``"insider"``. The others are shown.
    confidence : float
        Chance that all intervals the verdict rests on hold together, in (0.5, 1).
    smallest_group : int
        Groups with fewer members or non-members are not shown by themselves.
    required_attacks : tuple of str
        Attacks without which there is no release.
    limits : Limits
        The limits.
    """

    name: str
    decides_on: tuple[str, ...]
    confidence: float
    smallest_group: int
    required_attacks: tuple[str, ...]
    limits: Limits

    def __post_init__(self) -> None:
        if not 0.5 < self.confidence < 1:
            raise InvalidPolicy(
                f"the confidence is {self.confidence}, but must lie inside (0.5, 1); write 95 % as 0.95."
            )
        if self.smallest_group < 5:
            raise InvalidPolicy(
                f"the smallest group is {self.smallest_group}, which would show single people; use 5 or more."
            )
        for threat in self.decides_on:
            if threat not in THREATS:
                raise InvalidPolicy(
                    f"decides_on names {threat!r}; {nearest(threat, THREATS)}."
                )
        for attack in self.required_attacks:
            if attack not in KNOWN_ATTACKS:
                raise InvalidPolicy(
                    f"required_attacks names {attack!r}; {nearest(attack, KNOWN_ATTACKS)}."
                )
        if self.limits.privacy_at_least is None or not self.required_attacks:
            raise InvalidPolicy(
                f"the policy {self.name!r} sets no privacy_at_least or requires no attack, so it would release "
                "anything; set both."
            )
        if "outsider" not in self.decides_on:
            raise InvalidPolicy(
                "decides_on leaves out the outsider, but everybody who can query the product is one; add it."
            )
        if (
            "insider" in self.decides_on
            and self.limits.insider_privacy_at_least is None
        ):
            raise InvalidPolicy(
                "the policy decides on the insider but sets no insider_privacy_at_least; add that limit."
            )

    @property
    def statements(self) -> int:
        """How many statements are judged by an interval, so that all can hold together."""
        limits = self.limits
        judged = [
            limits.privacy_at_least,
            limits.tpr_at_most,
            limits.exposed_share_at_most,
            limits.utility_at_least,
            limits.group_privacy_at_least,
            limits.insider_privacy_at_least if "insider" in self.decides_on else None,
        ]
        # One more: the lower bound on epsilon, which may refute a claim.
        return 1 + sum(limit is not None for limit in judged)


def read_policy(source: Path | str) -> Policy:
    """Read a policy: the name of one that ships (``default``, ``strict``), or a TOML file.

    Raises
    ------
    InvalidPolicy
        If the file cannot be read, or has unknown or missing keys.

    Examples
    --------
    >>> read_policy("default").limits.privacy_at_least
    0.9
    >>> read_policy("strict").decides_on
    ('outsider', 'insider')
    """
    if str(source) in SHIPPED:
        text = resources.files("reticent.policy").joinpath(f"{source}.toml").read_text()
    else:
        path = Path(source)
        if not path.is_file():
            raise InvalidPolicy(
                f"there is no policy file {path}; pass a TOML file or one of {', '.join(SHIPPED)}."
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidPolicy(
                f"the policy {path} cannot be read ({error}); save it as TOML."
            ) from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPolicy(
            f"the policy {source} is not TOML ({error}); see the default policy for the form."
        ) from error
    return _parse(content, str(source))


def _parse(content: dict[str, Any], source: str) -> Policy:
    known = [field.name for field in fields(Policy)]
    known_limits = [field.name for field in fields(Limits)]
    for key in content:
        if key not in known:
            raise InvalidPolicy(
                f"the policy {source} has the unknown key {key!r}, which would be ignored; {nearest(key, known)}."
            )
    for key in known:
        if key not in content:
            raise InvalidPolicy(
                f"the policy {source} lacks {key!r}, without which it is not complete; copy it from the default policy."
            )
    if not isinstance(content["limits"], dict):
        raise InvalidPolicy(
            f"'limits' of the policy {source} is {content['limits']!r} and not a table; write it as [limits]."
        )
    for key in content["limits"]:
        if key not in known_limits:
            raise InvalidPolicy(
                f"the policy {source} has the unknown limit {key!r}, which would be ignored; "
                f"{nearest(key, known_limits)}."
            )
    try:
        return Policy(
            name=str(content["name"]),
            decides_on=tuple(content["decides_on"]),
            confidence=float(content["confidence"]),
            smallest_group=int(content["smallest_group"]),
            required_attacks=tuple(content["required_attacks"]),
            limits=Limits(**content["limits"]),
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidPolicy):
            raise
        raise InvalidPolicy(
            f"the policy {source} has a value of the wrong type ({error}); see the default policy for the form."
        ) from error
