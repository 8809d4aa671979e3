"""The dossier as text, for a terminal."""

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reticent.evidence import Estimate, strongest
from reticent.policy import Outcome, Verdict
from reticent.report._dossier import Dossier
from reticent.report.words import LIMIT_WORDS, percent

__all__ = ["print_report", "render_short", "render_text"]

_STYLE = {
    Verdict.RELEASE: "bold green",
    Verdict.REFUSE: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_MARK = {Outcome.KEPT: "kept", Outcome.BROKEN: "BROKEN", Outcome.OPEN: "open"}


def render_text(dossier: Dossier, *, width: int = 100) -> str:
    """Return the report as plain text."""
    buffer = io.StringIO()
    print_report(dossier, Console(file=buffer, width=width, no_color=True))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def render_short(dossier: Dossier) -> str:
    """Return verdict, summary and the two scores in a few lines."""
    return "\n".join(
        [
            f"{dossier.verdict}  (policy '{dossier.policy.name}', {dossier.policy.confidence:.0%} confidence)",
            f"  privacy {dossier.privacy}   utility {dossier.utility}",
            *(f"  {sentence}" for sentence in dossier.summary),
        ]
    )


def print_report(dossier: Dossier, console: Console) -> None:
    """Print the report: verdict first, then why, then the numbers."""
    evidence = dossier.evidence
    console.print()
    subject = dossier.subject
    headline = Text(dossier.verdict, style=_STYLE[dossier.verdict])
    headline.append(
        f"  {subject.get('product', 'product')} on {subject.get('table', 'the table')}, "
        f"policy '{dossier.policy.name}'",
        style="not bold dim",
    )
    console.print(headline)
    console.print()
    console.print(Padding(Text(" ".join(dossier.summary)), (0, 2)))
    console.print()
    for reason in dossier.reasons:
        console.print(Padding(Text(f"- {reason}"), (0, 2)))
    for step in dossier.decision.next_steps:
        console.print(Padding(Text(f"> {step}", style="bold"), (0, 2)))
    if dossier.verdict == Verdict.INCONCLUSIVE:
        leak = evidence.smallest_leak
        console.print(
            Padding(
                Text(
                    f"> The smallest leak this audit could have seen: LTU accuracy {leak:.3f} "
                    f"(privacy score {2 * (1 - leak):.2f}), with 80 % power."
                ),
                (0, 2),
            )
        )
    console.print(_limits(dossier))
    console.print(_attacks(dossier))
    if evidence.insider:
        console.print(_insider(dossier))
    if evidence.groups:
        console.print(_groups(dossier))
    console.print(_controls(dossier))
    for finding in dossier.findings:
        console.print(Padding(Text(f"{finding.severity}: {finding.text}"), (0, 2)))
    for warning in dossier.warnings:
        console.print(Padding(Text(f"warning: {warning}", style="yellow"), (0, 2)))
    console.print()
    console.print(Padding(Text(f"Repeat: {dossier.repeat}", style="dim"), (0, 2)))


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=True,
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _interval(estimate: Estimate | None) -> str:
    return "-" if estimate is None else str(estimate)


def _limits(dossier: Dossier) -> Table:
    table = _table("Limits of the policy", "quantity", "found", "limit", "")
    for check in dossier.decision.limits:
        sign = ">=" if check.at_least else "<="
        table.add_row(
            LIMIT_WORDS[check.name],
            _interval(check.estimate),
            f"{sign} {check.limit:g}",
            _MARK[check.outcome],
        )
    return table


def _attacks(dossier: Dossier) -> Table:
    rate = percent(dossier.policy.limits.tpr_at_fpr)
    table = _table(
        "Attacks of the outsider", "attack", "LTU accuracy (AUC)", f"TPR at FPR {rate}"
    )
    best = strongest(dossier.evidence.attacks)
    for attack in sorted(dossier.evidence.attacks, key=lambda a: -a.auc.value):
        table.add_row(
            attack.name.replace("_", " ") + (" (best)" if attack is best else ""),
            str(attack.auc),
            str(attack.tpr_at_fpr),
        )
    return table


def _insider(dossier: Dossier) -> Table:
    table = _table("The LTU insider: retraining", "regime", "rounds won", "privacy")
    insider = dossier.evidence.insider
    for regime in insider.regimes if insider else ():
        table.add_row(
            regime.name, f"{regime.wins:g} of {regime.rounds}", str(regime.privacy)
        )
    return table


def _groups(dossier: Dossier) -> Table:
    table = _table("Privacy by group", "group", "members", "privacy")
    for group in sorted(dossier.evidence.groups, key=lambda g: g.privacy.value):
        table.add_row(group.name, f"{group.members:,}", str(group.privacy))
    return table


def _controls(dossier: Dossier) -> Table:
    table = _table("Controls", "product", "privacy", "")
    for control in dossier.controls:
        table.add_row(
            control.name,
            str(control.privacy),
            "behaved" if control.behaved else "MISBEHAVED",
        )
    return table
