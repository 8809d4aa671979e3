"""The dossier as one self-contained page: no network, no record."""

import html
from importlib import resources

from reticent.evidence import Evidence, strongest
from reticent.policy import Outcome, Verdict
from reticent.report import figures
from reticent.report._dossier import Dossier
from reticent.report._markup import card, key, listed, table, text
from reticent.report._sections import (
    groups_section,
    people_section,
    pool_section,
    worst_case_section,
)
from reticent.report.epsilons import epsilons_section
from reticent.report.guarantee import guarantee_section
from reticent.report.watched import watched_section
from reticent.report.words import (
    GLOSSARY,
    LIMIT_WORDS,
    POOL_NAMES,
    looks_inside,
    outsider_does,
    percent,
    plain,
)
from reticent.report.words_pool import bound_words

__all__ = ["render_fragment", "render_html"]


def render_html(dossier: Dossier) -> str:
    """Return the report as one HTML file."""
    style, script = _resource("page.css"), _resource("page.js")
    title = f"{dossier.verdict}: {dossier.subject.get('product', 'product')}"
    sections = [
        _verdict(dossier),
        _scores(dossier),
        _limits(dossier),
        guarantee_section(dossier),
        epsilons_section(dossier.epsilons),
        _attacks(dossier),
        worst_case_section(dossier),
        people_section(dossier),
        groups_section(dossier),
        pool_section(dossier),
        _insider(dossier),
        watched_section(dossier.watched),
        _controls(dossier),
        _findings(dossier),
        _fine_print(dossier),
        _glossary(),
        _repeat(dossier),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n"
        f'<body><main>{"".join(sections)}</main><div id="tip" role="status"></div>'
        f"<script>{script}</script></body></html>\n"
    )


def render_fragment(dossier: Dossier) -> str:
    """Return the report for a notebook: the page in a frame of its own."""
    return (
        f'<iframe srcdoc="{html.escape(render_html(dossier))}" '
        'style="width:100%;height:640px;border:1px solid #ccc;border-radius:8px"></iframe>'
    )


def _resource(name: str) -> str:
    return resources.files("reticent.report").joinpath(name).read_text(encoding="utf-8")


def _verdict(dossier: Dossier) -> str:
    subject = dossier.subject
    what = " · ".join(
        subject[key] for key in ("table", "target", "product") if subject.get(key)
    )
    question = "May this model be released?"
    summary = "".join(f"<p>{text(s)}</p>" for s in dossier.summary)
    parts = [
        f"<h1>{question} {text(what)}</h1>",
        f'<div class="verdict {dossier.verdict}"><strong>{dossier.verdict}</strong>{summary}</div>',
        "<h2>Why</h2>",
        listed(dossier.reasons),
    ]
    if dossier.verdict == Verdict.INCONCLUSIVE:
        leak = dossier.evidence.smallest_leak
        steps = [
            *dossier.decision.next_steps,
            f"The smallest leak this audit could have seen is an LTU accuracy of {leak:.3f} (privacy score {2 * (1 - leak):.2f}), with 80 % power.",
        ]
        parts += ["<h2>What would settle it</h2>", listed(steps)]
    parts += [f'<p class="warning">{text(w)}</p>' for w in dossier.warnings]
    return "".join(parts)


def _scores(dossier: Dossier) -> str:
    evidence = dossier.evidence
    return (
        "<h2>Utility and privacy</h2>"
        f'<p class="lead">Bars are intervals that hold together with {dossier.policy.confidence:.0%} confidence; the red marks are the '
        f"limits of the policy '{text(dossier.policy.name)}'. Always answering the most frequent class would have a utility of "
        f"{evidence.guessing_utility:.2f}.</p>" + card(figures.scoreboard(dossier))
    )


def _limits(dossier: Dossier) -> str:
    rows = [
        (
            text(LIMIT_WORDS[check.name]),
            text(check.estimate) if check.estimate else "–",
            f"{'≥' if check.at_least else '≤'} {check.limit:.4g}",
            f'<span class="{check.outcome}">{check.outcome}</span>',
        )
        for check in dossier.decision.limits
    ]
    return "<h2>Limits of the policy</h2>" + table(
        ("quantity", "found", "limit", ""), rows
    )


def _attacks(dossier: Dossier) -> str:
    best = strongest(dossier.evidence.attacks)
    attacks = sorted(dossier.evidence.attacks, key=lambda a: -a.auc.value)
    others = [attack.name for attack in attacks if attack is not best]
    rate = percent(dossier.policy.limits.tpr_at_fpr)
    rows = [
        (
            text(plain(attack.name)) + (" <b>(best)</b>" if attack is best else ""),
            text(attack.auc),
            text(attack.privacy),
            text(attack.tpr_at_fpr),
            f"{attack.epsilon.low:.2f}",
        )
        for attack in attacks
    ]
    entries = [("member", f"best attack: {plain(best.name)}")]
    if any(name in POOL_NAMES for name in others):
        entries.append(("third", "other attacks that train models"))
    if any(looks_inside(name) for name in others):
        entries.append(("fourth", "other attacks that look inside"))
    entries += [("other", "other attacks that only query"), ("bad", "limit")]
    return (
        "<h2>What a stranger can find out</h2>"
        f'<p class="lead">The outsider {outsider_does(dossier.evidence)}. Above the dashed line an attack is better than chance; the band is the '
        "interval of the best attack, point by point; the diamond is the policy's limit. Point at a curve for its name.</p>"
        + card(figures.roc(dossier), key(entries))
        + table(
            (
                "attack",
                "LTU accuracy (AUC)",
                "privacy",
                f"TPR at FPR {rate}",
                "epsilon ≥",
            ),
            rows,
        )
    )


def _insider(dossier: Dossier) -> str:
    insider = dossier.evidence.insider
    if insider is None:
        return ""
    rows = [
        (text(r.name), f"{r.wins:g} of {r.rounds}", text(r.privacy))
        for r in insider.regimes
    ]
    decided = "decides on" if "insider" in dossier.policy.decides_on else "only shows"
    return (
        "<h2>What an insider can find out</h2>"
        '<p class="lead">The Leave-Two-Unlabeled insider knows the recipe and every tag but two, trains one model with each of the two '
        f"records, and picks the one whose answers are nearer to the product's. The policy {decided} this threat.</p>"
        + table(("regime", "rounds won", "privacy"), rows)
    )


def _controls(dossier: Dossier) -> str:
    rows = []
    for control in dossier.controls:
        word = "behaved" if control.behaved else "misbehaved"
        rows.append(
            (
                text(control.name),
                text(control.privacy),
                f'<span class="{word}">{word}</span>',
            )
        )
    return (
        "<h2>Controls</h2>"
        '<p class="lead">Two products whose answer is known were attacked in the same way: one must be caught, the other must not.</p>'
        + table(("product", "privacy", ""), rows)
        + listed(control.text for control in dossier.controls)
    )


def _findings(dossier: Dossier) -> str:
    rows = [
        (
            f'<span class="{text(finding.severity)}">{text(finding.severity)}</span>',
            f'<span style="white-space:normal">{text(finding.text)}</span>',
        )
        for finding in dossier.findings
    ]
    return "<h2>About the data</h2>" + table(("", "finding"), rows)


def _fine_print(dossier: Dossier) -> str:
    evidence, theorems = dossier.evidence, dossier.evidence.theorems
    kept = sum(c.outcome == Outcome.KEPT for c in dossier.decision.limits)
    items = [
        f"{dossier.records['defender']:,} records trained the product, {dossier.records['reserved']:,} were reserved, "
        f"{dossier.records['auxiliary']:,} are auxiliary; statistics count people ({evidence.members:,} and {evidence.nonmembers:,}), not rows.",
        f"{kept} of {len(dossier.decision.limits)} limits are kept with confidence. Intervals cover the draw of records for this very product, not re-runs of its training{_but(dossier)}.",
        f"The attacks show an epsilon of at least {evidence.epsilon.low:.2f}; on so many records no attack could have shown more than {evidence.epsilon_ceiling:.2f}.",
        f"The product errs on {percent(theorems['error_defender'])} of members and {percent(theorems['error_reserved'])} of non-members; by Theorem 2 of the LTU paper "
        f"this gap alone gives an attacker an accuracy of {theorems['theorem_2_zero_one']:.3f}, and the loss gives {theorems['theorem_1']:.3f} (Theorem 1).",
        *_neighbours(evidence),
        "Attack results speak only of the attacks that were run. Only a mechanism's guarantee, such as differential privacy, speaks of all; none is claimed here."
        if dossier.provenance.claimed_epsilon is None
        else f"An epsilon of {dossier.provenance.claimed_epsilon:g} is claimed by whoever trained the product; this audit can refute it but not prove it. "
        + bound_words(dossier),
    ]
    return "<h2>What to keep in mind</h2>" + listed(items)


def _but(dossier: Dossier) -> str:
    """Return which intervals are the exception: those that do cover re-runs."""
    pool = dossier.evidence.pool
    if pool is None or not (pool.targets or pool.disparity):
        return ""
    places = ["the table of other models"] if pool.targets else []
    places += ["groups over models"] if pool.disparity else []
    return f"; those of {' and '.join(places)} cover the trainer, re-runs included"


def _glossary() -> str:
    entries = "".join(
        f"<dt>{text(word)}</dt><dd>{text(GLOSSARY[word])}</dd>" for word in GLOSSARY
    )
    return f"<h2>Glossary</h2><dl>{entries}</dl>"


def _repeat(dossier: Dossier) -> str:
    provenance = dossier.provenance
    versions = ", ".join(
        f"{name} {version}" for name, version in provenance.versions.items()
    )
    return (
        "<h2>How to repeat it</h2>"
        f"<pre>{text(dossier.repeat)}</pre>"
        f"<p>Seed {dossier.seed}. Recipe <code>{text(provenance.recipe or 'unknown')}</code>. Data fingerprint "
        f"<code>{text(provenance.data_fingerprint[:16])}</code>. Versions: {text(versions)}.</p>"
    )


def _neighbours(evidence: Evidence) -> list[str]:
    """Return what the interval of the combined attack takes for granted."""
    if all(attack.name != "combined_pool" for attack in evidence.attacks):
        return []
    return [
        "The combined attack also looks at answers on similar records, so its scores are not quite independent; its intervals treat them as "
        "if they were. The unrelated control, attacked in the same way, watches over it."
    ]
