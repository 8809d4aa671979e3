"""What the verdict is about, so that it cannot be shown beside another product."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.report._dossier import Dossier
from reticent.report._markup import listed
from reticent.report._terminal import paragraph

__all__ = ["BindingSection"]

UNBOUND = (
    "This dossier is bound to no product: the version that wrote it did not do so yet. Nobody can check which file it speaks of.",
)
DIGITS = 16  # of a digest, for people to compare; the dossier has all


class BindingSection:
    """Product, policy, table, date and who judged."""

    title = "What this verdict is about"

    def html(self, dossier: Dossier) -> Markup:
        """Return a list of sentences."""
        return listed(binding_words(dossier))

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        return paragraph(*binding_words(dossier), style="dim")


def binding_words(dossier: Dossier) -> tuple[str, ...]:
    """Return what a dossier is bound to, in sentences."""
    binding = dossier.binding
    if binding is None:
        return UNBOUND
    by = f" by {binding.by}" if binding.by else ""
    product = (
        f"It is about the product with SHA-256 {_short(binding.product)}; `reticent verify` compares it with the files at hand."
        if binding.product
        else "The product was trained for this audit and not stored, so no file can be compared with it; store it with --save-product."
    )
    return (
        f"Judged {binding.made}{by} with reticent {binding.reticent}.",
        product,
        f"The policy '{dossier.policy.name}' has SHA-256 {_short(binding.policy)}. The table is known to its owner as {_short(binding.table)}.",
        f"The attackers of this audit could reach: {', '.join(binding.access)}. It says nothing about anybody who reaches more.",
    )


def _short(digest: str) -> str:
    digits = digest.rpartition(":")[2]
    return digits[:DIGITS] + "…"
