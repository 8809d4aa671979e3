"""Dossiers to look at, without an audit.

``version_2.json`` is what version 0.1 wrote, put together from three of its audits so that every part is there: a random
forest on Adult with a pool of 16 models and groups; a network with DP-SGD that was opened, which lends two white-box
attacks, the insider and its guarantee; and an identification. Some attacks and most points of curves were left out.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

from reticent.evidence import AttackFailed, AttackSkipped, Estimate, Statement, Utility
from reticent.report import Dossier

VERSION_2 = Path(__file__).with_name("version_2.json")
TRAINS_OTHERS, LOOKS_INSIDE = "trains others", "looks inside"


@cache
def full() -> Dossier:
    """Everything that a dossier can have."""
    return Dossier.from_json(VERSION_2.read_text(encoding="utf-8"))


def unclaimed() -> Dossier:
    """A product of which nobody claims anything, attacked by querying and by training others."""
    dossier = full()
    attacks = tuple(a for a in dossier.evidence.attacks if a.family != LOOKS_INSIDE)
    statements = tuple(s for s in dossier.statements if s.own_limit is None)
    limits = tuple(
        check
        for check in dossier.decision.limits
        if check.measure in {s.measure for s in statements}
    )
    return replace(
        dossier,
        statements=statements,
        decision=replace(dossier.decision, limits=limits, reasons=dossier.reasons[:-1]),
        evidence=replace(
            dossier.evidence, attacks=attacks, vulnerability_bound=None, insider=None
        ),
        provenance=replace(dossier.provenance, claimed_epsilon=None, guarantee=None),
        epsilons=None,
        watched=None,
    )


def regressor() -> Dossier:
    """The same of a model that predicts a quantity: other utility, theorems and views of an answer."""
    dossier = unclaimed()
    evidence = dossier.evidence
    theorems = {
        name: value
        for name, value in evidence.theorems.items()
        if not name.startswith("error") and name != "theorem_2_zero_one"
    }
    views = ("residual", "absolute residual and answer")
    return replace(
        dossier,
        kind="regressor",
        evidence=replace(
            evidence,
            utility=Utility(
                score=evidence.utility.score,
                definition="R squared: the share of the target's variance that the model explains",
                baseline=0.0,
                baseline_words="always answering the mean",
                beside={"the mean absolute error": an_estimate(12.5, 12.0, 13.0)},
            ),
            theorems=theorems,
            worst_case=tuple(
                replace(case, feature=view)
                for case, view in zip(evidence.worst_case, views, strict=False)
            ),
        ),
    )


def with_gaps(dossier: Dossier) -> Dossier:
    """The same with an attack that failed and one that was not begun."""
    return replace(
        dossier,
        evidence=replace(
            dossier.evidence,
            failed=(AttackFailed(name="my_attack", why="ZeroDivisionError"),),
            skipped=(AttackSkipped(name="slow_attack", why="there was no time."),),
        ),
    )


def own_statement(name: str = "carbon") -> Statement:
    """What a measure of the user's own says."""
    return Statement(
        measure=name,
        label=f"{name} of the training",
        words=f"the {name} of the training",
        better="lower",
        estimate=an_estimate(41.0, 40.0, 42.0),
    )


def an_estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, level=0.95, method="made")
