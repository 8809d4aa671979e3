"""The rules of release, written down before the audit."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidInput, InvalidPolicy
from reticent.evidence import Limit, Measure, Threat
from reticent.policy._first_form import in_new_form

__all__ = ["SHIPPED", "Policy", "read_policy"]

SHIPPED = ("default", "strict")
ANY_KIND = "any"  # of product: attacks that are required whatever is audited
RELEASES = ("file", "queries")
OPTIONAL = (
    "release",
)  # a policy that does not say what is given away means everything
THREATS = tuple(threat.value for threat in Threat)
SMALLEST_GROUP = 5  # a group of fewer people would show single people


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What must hold before a product is released.

    It knows no measure by name: what a limit means, which side is better and what would settle it is the measure's own.

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
    required_attacks : mapping of str to tuple of str
        Attacks without which there is no release, by kind of product; ``"any"`` for all kinds.
    limits : tuple of Limit
        The limits.
    release : str
        What would be given away: ``"file"``, or ``"queries"`` if people only get answers.
    """

    name: str
    decides_on: tuple[str, ...]
    confidence: float
    smallest_group: int
    required_attacks: Mapping[str, tuple[str, ...]]
    limits: tuple[Limit, ...]
    release: str = "file"

    def __post_init__(self) -> None:
        if self.release not in RELEASES:
            raise InvalidPolicy(
                f'the policy {self.name!r} says release = {self.release!r}, but what is given away is either the "file" or answers to '
                '"queries"; write one of the two.'
            )
        if not 0.5 < self.confidence < 1:
            raise InvalidPolicy(
                f"the confidence is {self.confidence}, but must lie inside (0.5, 1); write 95 % as 0.95."
            )
        if self.smallest_group < SMALLEST_GROUP:
            raise InvalidPolicy(
                f"the smallest group is {self.smallest_group}, which would show single people; use {SMALLEST_GROUP} or more."
            )
        for threat in self.decides_on:
            if threat not in THREATS:
                raise InvalidPolicy(
                    f"decides_on names {threat!r}; {nearest(threat, THREATS)}."
                )
        if Threat.OUTSIDER.value not in self.decides_on:
            raise InvalidPolicy(
                "decides_on leaves out the outsider, but everybody who can query the product is one; add it."
            )
        judging = any(limit.judges for limit in self.limits)
        if not judging or not any(self.required_attacks.values()):
            raise InvalidPolicy(
                f"the policy {self.name!r} sets no limit or requires no attack, so it would release anything; set both."
            )
        named = [limit.measure for limit in self.limits]
        for measure in named:
            if named.count(measure) > 1:
                raise InvalidPolicy(
                    f"the policy {self.name!r} limits {measure} twice; keep one of the two."
                )

    @property
    def queries_only(self) -> bool:
        """Whether people get answers to queries, and nobody gets the file."""
        return self.release == "queries"

    def limit(self, measure: str) -> Limit | None:
        """Return the limit on a measure, if there is one."""
        return next((limit for limit in self.limits if limit.measure == measure), None)

    def required(self, kind: str) -> tuple[str, ...]:
        """Return the attacks without which a product of some kind is not released."""
        general = self.required_attacks.get(ANY_KIND, ())
        return (*self.required_attacks.get(kind, ()), *general)

    def decides(self, threat: str) -> bool:
        """Whether a statement about some threat counts; one that is about no threat always does."""
        return not threat or threat in self.decides_on

    def statements(self, measures: Iterable[Measure]) -> int:
        """Return how many statements are judged by an interval, so that all can hold together."""
        judged = [
            measure
            for measure in measures
            if measure.has_interval
            and self.decides("" if measure.threat is None else measure.threat.value)
            and (limit := self.limit(measure.name)) is not None
            and limit.judges
        ]
        # One more: the lower bound on epsilon, which may refute a claim.
        return 1 + len(judged)

    def check(
        self, measures: Iterable[Measure], *, attacks: Iterable[str], kind: str
    ) -> None:
        """Refuse limits and attacks that an audit of some kind does not know, before anything is trained.

        Parameters
        ----------
        measures : iterable of Measure
            What the audit measures.
        attacks : iterable of str
            Names of the attacks it knows.
        kind : str
            What is audited.

        Raises
        ------
        InvalidPolicy
            If the policy names something else, or decides on a threat that it does not limit.
        """
        known = {measure.name: measure for measure in measures}
        for limit in self.limits:
            if limit.measure not in known:
                raise InvalidPolicy(
                    f"the policy {self.name!r} has the unknown limit {limit.measure!r}, which would be ignored; "
                    f"{nearest(limit.measure, known)}."
                )
            known[limit.measure].check(limit)
        attacks = list(attacks)
        for attack in self.required(kind):
            if attack not in attacks:
                raise InvalidPolicy(
                    f"required_attacks names {attack!r}; {nearest(attack, attacks)}."
                )
        for threat in self.decides_on:
            about = [
                m.name
                for m in known.values()
                if m.threat is not None and m.threat.value == threat
            ]
            limits = [self.limit(name) for name in about]
            if not any(limit is not None and limit.judges for limit in limits):
                raise InvalidPolicy(
                    f"the policy {self.name!r} decides on the {threat} but limits nothing that speaks of it; add "
                    f"[limits.{about[0] if about else threat}]."
                )


def read_policy(source: Path | str) -> Policy:
    """Read a policy: the name of one that ships (``default``, ``strict``), or a TOML file.

    Raises
    ------
    InvalidPolicy
        If the file cannot be read, or has unknown or missing keys.

    Examples
    --------
    >>> print(read_policy("default").limit("privacy"))
    at least 0.9
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
    for key in content:
        if key not in known:
            raise InvalidPolicy(
                f"the policy {source} has the unknown key {key!r}, which would be ignored; {nearest(key, known)}."
            )
    # No default for a missing key: whoever signs a policy must have read all of it.
    for key in known:
        if key not in content and key not in OPTIONAL:
            raise InvalidPolicy(
                f"the policy {source} lacks {key!r}, without which it is not complete; copy it from the default policy."
            )
    try:
        return Policy(
            name=str(content["name"]),
            decides_on=tuple(content["decides_on"]),
            confidence=float(content["confidence"]),
            smallest_group=int(content["smallest_group"]),
            required_attacks=_required(content["required_attacks"], source),
            limits=_limits(content["limits"], source),
            release=content.get("release", "file"),
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidPolicy):
            raise
        if isinstance(error, InvalidInput):
            raise InvalidPolicy(
                f"the policy {source} cannot be used: {error}"
            ) from error
        raise InvalidPolicy(
            f"the policy {source} has a value of the wrong type ({error}); see the default policy for the form."
        ) from error


def _required(content: Any, source: str) -> dict[str, tuple[str, ...]]:
    """Return required attacks by kind; a plain list holds for every kind."""
    by_kind = content if isinstance(content, dict) else {ANY_KIND: content}
    for kind, names in by_kind.items():
        if not isinstance(names, list):
            raise InvalidPolicy(
                f"required_attacks of the policy {source} is {names!r} for {kind}; write a list of names."
            )
    return {kind: tuple(map(str, names)) for kind, names in by_kind.items()}


def _limits(content: Any, source: str) -> tuple[Limit, ...]:
    if not isinstance(content, dict):
        raise InvalidPolicy(
            f"'limits' of the policy {source} is {content!r} and not a table; write [limits.privacy] with at_least = 0.9."
        )
    flat = {key: value for key, value in content.items() if not isinstance(value, dict)}
    if flat:
        rewritten = in_new_form(flat)
        hint = (
            f"write them as {rewritten}"
            if rewritten
            else "write for example [limits.privacy] at_least = 0.9"
        )
        raise InvalidPolicy(
            f"the policy {source} sets {', '.join(flat)} right under [limits], as version 0.1 did; every measure has a table "
            f"of its own now: {hint}."
        )
    return tuple(
        Limit(
            measure=measure,
            at_least=entries.get("at_least"),
            at_most=entries.get("at_most"),
            at={k: v for k, v in entries.items() if k not in ("at_least", "at_most")},
        )
        for measure, entries in content.items()
    )
