"""Read what version 0.1 wrote: dossiers of schema 2 and identifications of schema 1, as JSON of today.

This is the one place that knows attacks and measures by name: those of version 0.1 did not say what they are.
"""

from collections.abc import Mapping
from typing import Any

from reticent.errors import InvalidInput
from reticent.policy import FIRST_NAMES

__all__ = [
    "IDENTIFICATION_1",
    "VERSION_2",
    "dossier_from_version_2",
    "identification_from_version_1",
]

VERSION_2 = "reticent-dossier-2"
IDENTIFICATION_1 = "reticent-identification-1"

_TRAIN_OTHERS = ("lira", "lira_offline", "rmia", "shadow", "combined_pool")
# Attacks that predict probabilities of membership, the one that was shown first.
_PREDICTING = ("combined_pool", "learned_outputs")
_MEASURES = {"tpr_at_fpr": "tpr"}  # names that have changed
# Measure -> label, words, better, threat, whether it compares members with non-members.
_STATED = {
    "privacy": (
        "privacy, outsider",
        "the privacy score against the outsider's best attack",
        "higher",
        "outsider",
        True,
    ),
    "tpr": (
        "members pointed out",
        "the share of members pointed out at a low false-positive rate",
        "lower",
        "outsider",
        True,
    ),
    "exposed": (
        "exposed members",
        "the share of members with low individual privacy",
        "lower",
        "outsider",
        True,
    ),
    "group_privacy": (
        "privacy, worst group",
        "the privacy score of the worst group",
        "higher",
        "outsider",
        True,
    ),
    "insider_privacy": (
        "privacy, insider",
        "the privacy score against the retraining insider",
        "higher",
        "insider",
        True,
    ),
    "utility": ("utility", "the utility score", "higher", "", False),
    "claimed_epsilon": ("claimed epsilon", "the claimed epsilon", "lower", "", False),
    "claim_refuted": (
        "epsilon shown, against the claim",
        "the epsilon that attacks have shown",
        "lower",
        "",
        True,
    ),
    "training_refuted": (
        "epsilon shown by watching, against the claim",
        "the epsilon that watching the training has shown",
        "lower",
        "",
        False,
    ),
}
_CLAIMS = ("claim_refuted", "training_refuted")  # limits that products bring themselves


def dossier_from_version_2(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dossier of schema 2 as one of schema 3, still as JSON values.

    Raises
    ------
    InvalidInput
        If it lacks what a dossier of schema 2 has.
    """
    try:
        return _dossier(_infinite(content))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # It says already what is wrong.
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"the dossier does not obey its schema, {VERSION_2} ({type(error).__name__}: {error}); it was changed, so "
            "audit again."
        ) from error


def identification_from_version_1(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identification of schema 1 as one of schema 2, still as JSON values, without its schema."""
    identification = {
        key: value for key, value in _infinite(content).items() if key != "schema"
    }
    if isinstance(identification.get("epsilons"), dict):
        identification["epsilons"] = _epsilons(identification["epsilons"])
    return identification


def _dossier(old: dict[str, Any]) -> dict[str, Any]:
    evidence = old.pop("evidence")
    checks = [_check(check) for check in old.pop("limits")]
    attacks = [_attack(attack) for attack in old.pop("attacks")]
    names = [attack["name"] for attack in attacks]
    best = {
        "privacy": old["privacy"],
        "tpr": evidence.pop("tpr_at_fpr"),
        "exposed": evidence.pop("exposed"),
        "utility": old["utility"],
    }
    del evidence["epsilon"]  # the largest of the attacks' bounds
    if evidence["insider"] is not None:
        best["insider_privacy"] = evidence["insider"]["privacy"]
    evidence |= {
        "utility": {
            "score": old["utility"],
            "definition": "(c accuracy - 1)/(c - 1) for c classes: 0 is a uniform guess, 1 is never wrong",
            "baseline": evidence.pop("guessing_utility"),
            "baseline_words": "always answering the most frequent class",
            "beside": {},
        },
        "predicted_by": next((n for n in _PREDICTING if n in names), "")
        if evidence["calibration"] is not None
        else "",
    }
    provenance = old.pop("provenance")
    if "promise" in provenance:
        provenance["guarantee"] = provenance.pop("promise")
    if old["epsilons"] is not None:
        old["epsilons"] = _epsilons(old["epsilons"])
    if old["watched"] is not None:
        old["watched"]["epsilons"] = _epsilons(old["watched"]["epsilons"])
    for control in old["controls"]:
        # What catches an unrelated product sees something else than membership.
        control |= {"misleads": control["name"] == "unrelated", "to_settle": ""}
    return old | {
        "kind": "classifier",
        "limits": checks,
        "attacks": attacks,
        "statements": _statements(checks, best),
        "policy": _policy(old["policy"]),
        "provenance": provenance,
        "evidence": evidence,
    }


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    measure = _MEASURES.get(check["name"], check["name"])
    side = "at_least" if check["at_least"] else "at_most"
    return {
        "measure": measure,
        "label": _STATED[measure][0],
        "limit": {"measure": measure, side: check["limit"]},
        "estimate": check["estimate"],
        "outcome": check["outcome"],
        "text": check["text"],
    }


def _statements(
    checks: list[dict[str, Any]], best: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return what every limit judged, and what was measured without one."""
    judged = {check["measure"]: check for check in checks}
    statements = []
    for measure, (label, words, better, threat, compares) in _STATED.items():
        check = judged.get(measure)
        # Neither judged nor measured.
        if check is None and measure not in best:
            continue
        claim = check if measure in _CLAIMS else None
        statements.append(
            {
                "measure": measure,
                "label": label,
                "words": words,
                "better": better,
                "estimate": best[measure] if check is None else check["estimate"],
                "threat": threat,
                "compares": compares,
                "own_limit": None if claim is None else claim["limit"],
                "own_outcome": None if claim is None else claim["outcome"],
                "sentences": {} if check is None else {check["outcome"]: check["text"]},
            }
        )
    return statements


def _attack(attack: Mapping[str, Any]) -> dict[str, Any]:
    name = attack["name"]
    family = "queries"
    # An attack on one layer carries the layer's name: gradient_norm_output.
    if name == "learned_white_box" or name.startswith("gradient_norm"):
        family = "looks inside"
    elif name in _TRAIN_OTHERS:
        family = "trains others"
    fields = {key: value for key, value in attack.items() if key != "threat"}
    return fields | {"family": family}


def _policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    limits: dict[str, dict[str, Any]] = {}
    for key, value in policy["limits"].items():
        # Version 0.1 wrote a limit that was not set as null.
        if value is None:
            continue
        measure, name = FIRST_NAMES[key]
        limit = limits.setdefault(measure, {"measure": measure, "at": {}})
        if name in ("at_least", "at_most"):
            limit[name] = value
        else:
            limit["at"][name] = value
    return {
        **policy,
        "required_attacks": {"any": policy["required_attacks"]},
        "limits": list(limits.values()),
    }


def _epsilons(epsilons: Mapping[str, Any]) -> dict[str, Any]:
    names = {"honest": "proven", "honest_says": "proven_by"}
    return {names.get(key, key): value for key, value in epsilons.items()}


def _infinite(value: Any) -> Any:
    """Return the same with infinities: version 0.1 wrote them as null, which also meant that there is no value."""
    if isinstance(value, list):
        return [_infinite(item) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {key: _infinite(item) for key, item in value.items()}
    if {"value", "low", "high", "level"} <= set(converted):
        # An estimate without a value is infinite as a whole; one with a value lacks its lower end.
        low = "Infinity" if converted["value"] is None else "-Infinity"
        ends = {"value": "Infinity", "low": low, "high": "Infinity"}
        converted |= {key: end for key, end in ends.items() if converted[key] is None}
    for key in ("ceiling", "epsilon_ceiling"):
        if key in converted and converted[key] is None:
            converted[key] = "Infinity"
    return converted
