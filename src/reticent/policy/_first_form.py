"""Policies as version 0.1 wrote them: told in the new form, not silently converted."""

from collections.abc import Mapping

__all__ = ["FIRST_NAMES", "in_new_form"]

# Key of version 0.1 -> measure and key of today.
FIRST_NAMES: Mapping[str, tuple[str, str]] = {
    "privacy_at_least": ("privacy", "at_least"),
    "tpr_at_most": ("tpr", "at_most"),
    "tpr_at_fpr": ("tpr", "fpr"),
    "exposed_share_at_most": ("exposed", "at_most"),
    "exposed_below": ("exposed", "below"),
    "utility_at_least": ("utility", "at_least"),
    "claimed_epsilon_at_most": ("claimed_epsilon", "at_most"),
    "group_privacy_at_least": ("group_privacy", "at_least"),
    "insider_privacy_at_least": ("insider_privacy", "at_least"),
}


def in_new_form(limits: Mapping[str, object]) -> str:
    """Return limits of version 0.1 in today's form, on one line; what is not known is left out.

    Examples
    --------
    >>> in_new_form({"tpr_at_most": 0.01, "tpr_at_fpr": 0.001})
    '[limits.tpr] at_most = 0.01, fpr = 0.001'
    """
    tables: dict[str, list[str]] = {}
    for key, value in limits.items():
        if key in FIRST_NAMES:
            measure, name = FIRST_NAMES[key]
            tables.setdefault(measure, []).append(f"{name} = {value}")
    return "; ".join(
        f"[limits.{measure}] {', '.join(entries)}"
        for measure, entries in tables.items()
    )
