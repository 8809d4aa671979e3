"""The dossier as text, for a terminal."""

import io
from typing import Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reticent.evidence import Estimate, strongest
from reticent.policy import Outcome, Verdict
from reticent.report._dossier import Dossier
from reticent.report.guarantee import beside_evidence, guarantee_sentence
from reticent.report.watched import epsilons_table, watched_table
from reticent.report.words import LIMIT_WORDS, percent, plain
from reticent.report.words_pool import (
    bound_words,
    disparity_words,
    loss_words,
    pool_words,
)

__all__ = ["print_report", "render_short", "render_text"]

_STYLE = {
    Verdict.RELEASE: "bold green",
    Verdict.REFUSE: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_MARK = {Outcome.KEPT: "kept", Outcome.BROKEN: "BROKEN", Outcome.OPEN: "open"}


class _Make(Protocol):
    """Makes a table whose cells may be stacked."""

    def __call__(self, dossier: Dossier, *, stacked: bool) -> Table: ...


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
    _guarantee(dossier, console)
    if dossier.epsilons is not None:
        console.print(epsilons_table(dossier.epsilons))
    if dossier.watched is not None:
        console.print(watched_table(dossier.watched))
    console.print(_attacks(dossier))
    console.print(_worst_case(dossier))
    _say(console, bound_words(dossier))
    if evidence.groups:
        console.print(_fitting(_groups, dossier, console))
        _say(console, disparity_words(evidence, most=10))
    if evidence.pool:
        if evidence.pool.targets:
            console.print(_fitting(_pool, dossier, console))
        _say(console, pool_words(evidence.pool), loss_words(evidence.pool))
    if evidence.insider:
        console.print(_insider(dossier))
    console.print(_controls(dossier))
    for finding in dossier.findings:
        console.print(Padding(Text(f"{finding.severity}: {finding.text}"), (0, 2)))
    for warning in dossier.warnings:
        console.print(Padding(Text(f"warning: {warning}", style="yellow"), (0, 2)))
    console.print()
    console.print(Padding(Text(f"Repeat: {dossier.repeat}", style="dim"), (0, 2)))


def _guarantee(dossier: Dossier, console: Console) -> None:
    """Print what is guaranteed beside what attacks have shown."""
    guarantee = dossier.provenance.guarantee
    if guarantee is None:
        return
    title = "What is guaranteed" if guarantee.holds else "What is NOT guaranteed"
    table = _table(
        f"{title}, beside what attacks have shown", "statement", "guaranteed", "shown"
    )
    for row in beside_evidence(dossier):
        table.add_row(*row)
    console.print(table)
    _say(
        console,
        guarantee_sentence(guarantee),
        *(f"Note: {c}." for c in guarantee.caveats),
    )


def _table(title: str, *columns: str, tight: bool = False) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=True,
        collapse_padding=tight,
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
            f"{sign} {check.limit:.4g}",
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
            plain(attack.name) + (" (best)" if attack is best else ""),
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


def _groups(dossier: Dossier, *, stacked: bool) -> Table:
    table = _table(
        "Privacy by group (privacy: 1 is best; vulnerability, worst case: 0 is best)",
        "group",
        "members",
        "privacy",
        "vulnerability",
        "worst case",
        tight=stacked,
    )
    for group in sorted(dossier.evidence.groups, key=lambda g: g.privacy.value):
        table.add_row(
            group.name,
            f"{group.members:,}",
            _cell(group.privacy, stacked),
            _cell(group.vulnerability, stacked),
            _cell(group.worst_case, stacked),
        )
    return table


def _pool(dossier: Dossier, *, stacked: bool) -> Table:
    targets = dossier.evidence.pool.targets if dossier.evidence.pool else ()
    rates = targets[0].fpr if targets else ()
    table = _table(
        "Pool: other models of the recipe as targets (intervals cover the trainer)",
        "attack",
        "models",
        "LTU accuracy",
        "range",
        *(f"TPR at {percent(rate)}" for rate in rates),
        tight=stacked,
    )
    between = "\n" if stacked else " "
    for found in targets:
        table.add_row(
            plain(found.name),
            str(found.targets),
            _cell(found.auc, stacked),
            f"{found.lowest:.3f}{between}to {found.highest:.3f}",
            *(_cell(tpr, stacked) for tpr in found.tpr),
        )
    return table


def _worst_case(dossier: Dossier) -> Table:
    """Return the worst case by what is seen, beside what was reached."""
    evidence = dossier.evidence
    table = _table("Worst case (0 is best, 1 is worst)", "adversary", "vulnerability")
    for case in evidence.worst_case:
        table.add_row(f"sees: {case.feature}", str(case.estimate))
    if evidence.subgroup_aware:
        table.add_row("sees: that score and the group", str(evidence.subgroup_aware))
    best = strongest(evidence.attacks)
    table.add_row(f"reached: {plain(best.name)} (best)", str(best.vulnerability))
    for attack in evidence.attacks:
        if attack.name == "shadow" and attack is not best:
            table.add_row("reached: shadow models", str(attack.vulnerability))
    return table


def _cell(estimate: Estimate, stacked: bool) -> str:
    """Return an estimate on one line, or its interval under its value."""
    return str(estimate).replace(" [", "\n[") if stacked else str(estimate)


def _fitting(make: _Make, dossier: Dossier, console: Console) -> Table:
    """Return a table, its cells stacked if it would not fit otherwise."""
    table = make(dossier, stacked=False)
    # Rich says how wide a table would be only up to the width it is given.
    free = console.options.update(width=4 * console.width)
    if console.measure(table, options=free).maximum <= console.width:
        return table
    return make(dossier, stacked=True)


def _say(console: Console, *sentences: str) -> None:
    """Print sentences, each on lines of its own, and a blank line; nothing for empty ones."""
    for words in filter(None, sentences):
        console.print(Padding(Text(words), (0, 2)))
    if any(sentences):
        console.print()


def _controls(dossier: Dossier) -> Table:
    table = _table("Controls", "product", "privacy", "")
    for control in dossier.controls:
        table.add_row(
            control.name,
            str(control.privacy),
            "behaved" if control.behaved else "MISBEHAVED",
        )
    return table
