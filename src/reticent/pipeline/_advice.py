"""What to do next: the commands that would settle an audit, and what could help a product that was refused.

Nothing is promised that was not tried: a remedy is called possible, and it ends in the command whose audit would show it.
"""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from scipy.stats import norm

from reticent.attack import Need
from reticent.audits import Kind
from reticent.evidence import Evidence, found_beyond_chance, strongest
from reticent.pipeline._plan import INSIDER_ATTACK, AuditPlan
from reticent.policy import Gap, Policy
from reticent.train import remedies_of_parameters

__all__ = ["gap_of_missing", "plain_gap", "remedies", "unneeded"]

POOL_ENOUGH = 8  # models, as the audit trains by default
# Options that belong to the table, which `reticent train` knows as well.
TABLE_OPTIONS = ("--target", "--unit", "--part", "--schema", "--drop")
PRIVATE_FOLDER, CLEANED_FOLDER = "private-product", "cleaned-product"
FILE_FAMILY = "reads the file"  # of attacks, as the evidence calls it
# By kind of product: the simplest recipe whose file is a few coefficients.
KEEPS_NO_RECORDS = {
    "classifier": "sklearn.linear_model.LogisticRegression()",
    "regressor": "sklearn.linear_model.Ridge()",
}


def gap_of_missing(plan: AuditPlan, attack: str) -> Gap:
    """Return that a required attack was not run, with the command that would run it.

    Parameters
    ----------
    plan : AuditPlan
        The audit.
    attack : str
        An attack that the policy requires.
    """
    reason = plain_gap(attack).reason
    needs = {known.name: known.needs for known in plan.known_attacks}
    if Need.FILE in needs.get(attack, ()):
        return Gap(
            reason=reason,
            to_settle="Audit a product that can be saved, so that its file can be read; or release answers to queries only, and write "
            'release = "queries" into the policy.',
        )
    if attack != INSIDER_ATTACK and Need.POOL not in needs.get(attack, ()):
        return plain_gap(attack)
    if attack == INSIDER_ATTACK and not plan.kind.plays_insider:
        return Gap(
            reason=reason,
            to_settle=f"Nobody plays the insider against a {plan.kind.noun}: decide by a policy that does not ask for it, such as the default one.",
        )
    if plan.trainer is None and plan.of_kind is not None:
        return Gap(
            reason=reason,
            to_settle="Name the generator of the table with --generator, so that others like it can be made and compared with it.",
        )
    if plan.trainer is None:
        return Gap(
            reason=reason,
            to_settle="Name the recipe of the product with --trainer, so that others like it can be trained and compared with it.",
        )
    if attack == INSIDER_ATTACK:
        return Gap(
            reason=reason,
            to_settle="Run the retraining attacker: audit with --trainer and more --minutes.",
        )
    return Gap(
        reason=reason,
        to_settle=f"Train models to compare with: {_again(plan, 'pool', str(POOL_ENOUGH))}",
    )


def plain_gap(attack: str) -> Gap:
    """Return that a required attack was not run, where nothing more is known."""
    return Gap(
        reason=f"The policy requires the attack {attack!r}, which was not run.",
        to_settle=f"Run the attack {attack!r}.",
    )


def unneeded(policy: Policy, kind: Kind, attack: str) -> bool:
    """Whether a required attack needs the file, and the policy releases answers to queries only."""
    needs = {known.name: known.needs for known in kind.attacks}
    return policy.queries_only and Need.FILE in needs.get(attack, ())


def remedies(plan: AuditPlan, evidence: Evidence | None = None) -> tuple[str, ...]:
    """Return what could help a product that was refused for what it reveals, in sentences that end in commands.

    Parameters
    ----------
    plan : AuditPlan
        The audit.
    evidence : Evidence, optional
        What was found; if nothing shows more than the file, what could be done about it comes first.
    """
    if plan.of_kind is not None:
        return () if evidence is None else plan.of_kind.remedies(evidence)
    steps = [] if evidence is None else _file_steps(plan, evidence)
    if plan.trainer is not None:
        for remedy in remedies_of_parameters(
            plan.trainer.parameters(), plan.trainer.recipe
        ):
            how = _again(plan, "trainer", remedy.recipe) if remedy.recipe else ""
            steps.append(
                f"Possible, not tried: {remedy.words}" + (f": {how}" if how else ".")
            )
    private = _private(plan)
    if private:
        steps.append(private)
    compared = _compared(plan)
    if compared:
        steps.append(compared)
    return tuple(steps)


def _compared(plan: AuditPlan) -> str:
    """Return the command that compares the usual defences on this table, if the audit came from the command line."""
    if plan.trainer is None or not plan.arguments or "(" not in plan.trainer.recipe:
        return ""
    table = _table_arguments(plan.arguments)
    command = ["reticent", "compare", *table, "--around", plan.trainer.recipe]
    return f"Which of these, and what else, would keep the limits at what price: {shlex.join(command)}"


def _file_steps(plan: AuditPlan, evidence: Evidence) -> list[str]:
    """Return what could be done if whoever reads the file learns most."""
    if strongest(evidence.attacks).family != FILE_FAMILY:
        return []
    steps = _another_model(plan, evidence)
    if plan.trainer is not None and plan.product is None and not plan.cleaned:
        # Whoever keeps a product as it was trained keeps what cleaning would take out.
        words = tuple(word for word in plan.arguments if word != "--as-is")
        how = (
            _again(replace(plan, arguments=words), "save-product", CLEANED_FOLDER)
            if plan.arguments
            else "reticent.clean"
        )
        steps.append(
            f"Possible, not tried: take out of the file what no answer needs, and audit what is left: {how}"
        )
    others = [a for a in evidence.attacks if a.family not in (FILE_FAMILY, "looks inside")]  # fmt: skip
    best = strongest(others) if others else None
    limit = plan.policy.limit("privacy")
    # Where answers break the limit as well, to keep the file back would help nobody.
    at_least = None if limit is None else limit.at_least
    if best is not None and (at_least is None or best.privacy.high >= at_least):
        steps.append(
            'Possible: release answers to queries only, and write release = "queries" into the policy; the best attack that needs no more '
            f"({best.name.replace('_', ' ')}) has a privacy score of {best.privacy}."
        )
    return steps


# The file of a model and an attribute in it; anything else lies beside it, or between the parts of its archive.
_PART_OF_MODEL = re.compile(r"[^/:]*:\w|\w*$")


def _another_model(plan: AuditPlan, evidence: Evidence) -> list[str]:
    """Return the advice to choose another kind of model, if this one keeps the records of members."""
    file, other = evidence.file, KEEPS_NO_RECORDS.get(plan.kind.name)
    if file is None or file.rows is None or other is None or plan.trainer is None:
        return []
    whole = found_beyond_chance(
        file.rows,
        members=file.members,
        nonmembers=file.nonmembers,
        level=plan.policy.confidence,
    )
    if whole.low == 0:
        return []
    if not _PART_OF_MODEL.match(file.rows.place):
        return [
            f"Take out of the product what is no part of the model: {file.rows.place}. Then audit what is left."
        ]
    how = _again(plan, "trainer", other)
    return [
        "Possible, not tried: a kind of model that stores no records. This one answers from those of its members, which therefore cannot be "
        "taken out of its file" + (f": {how}" if how else ".")
    ]


def _private(plan: AuditPlan) -> str:
    """Return the private training whose guarantee alone keeps the limit on privacy, if the audit came from the command line."""
    limit = plan.policy.limit("privacy")
    if limit is None or limit.at_least is None:
        return ""
    # There is no private regression, and only the command line is told by commands.
    if not plan.arguments or plan.kind.name != "classifier":
        return ""
    table = _table_arguments(plan.arguments)
    # Rounded down, so that what is typed keeps the limit.
    advantage = math.floor(1e3 * advantage_that_keeps(limit.at_least)) / 1e3
    train = ["reticent", "train", *table, "--advantage", f"{advantage:g}"]
    train += ["--out", PRIVATE_FOLDER]
    audit = ["reticent", "audit", *table, "--product", PRIVATE_FOLDER]
    return f"Proven against every attack, its utility not tried: {shlex.join(train)} and then {shlex.join(audit)}"


def advantage_that_keeps(privacy: float) -> float:
    r"""Return the largest advantage of a Gaussian mechanism whose LTU privacy score is at least some value.

    By :math:`\mu`-GDP no attack has an area above :math:`A = \Phi(\mu/\sqrt 2)`, nor an advantage above
    :math:`2\Phi(\mu/2) - 1`; the score is :math:`2 (1 - A)`.

    Examples
    --------
    >>> round(advantage_that_keeps(0.9), 4)
    0.0708
    """
    mu = 2**0.5 * norm.ppf(1 - privacy / 2)
    return float(2 * norm.cdf(mu / 2) - 1)


def _again(plan: AuditPlan, name: str, value: str) -> str:
    """Return the command or call that repeats the audit with one argument changed."""
    if plan.arguments:
        kept = _without(plan.arguments, f"--{name}")
        return shlex.join(["reticent", *kept, f"--{name}", value])
    if name == "trainer" and plan.trainer is not None:
        return plan.repeat.replace(plan.trainer.recipe, value, 1)
    changed, count = re.subn(rf"\b{name}=[^,)]+", f"{name}={value}", plan.repeat)
    return changed if count else f"{plan.repeat[:-1]}, {name}={value})"


def _without(arguments: Sequence[str], option: str) -> list[str]:
    """Return arguments without an option and its value."""
    kept, skip = [], False
    for argument in arguments:
        if skip:
            skip = False
        elif argument == option:
            skip = True
        elif not argument.startswith(f"{option}="):
            kept.append(argument)
    return kept


def _table_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the table and the options about it; nothing if the audit did not come from the command line."""
    chosen: list[str] = []
    take = False
    for place, argument in enumerate(arguments):
        name = argument.partition("=")[0]
        if take:
            chosen.append(argument)
            take = False
        elif name in TABLE_OPTIONS:
            chosen.append(argument)
            take = "=" not in argument
        elif place == 1 and not argument.startswith("-"):
            chosen.append(argument)
    return chosen
