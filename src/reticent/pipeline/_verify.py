"""Say whether a verdict is about the files at hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reticent.errors import InvalidInput
from reticent.pipeline._bind import table_file_digest
from reticent.pipeline._derive import Derived, derive_again
from reticent.policy import Policy, Verdict, read_policy
from reticent.product import product_digest
from reticent.report import Binding, Dossier, is_signed_by, policy_digest
from reticent.run import read_text

__all__ = ["Verification", "dossier_file", "verify"]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Whether a verdict is about the files at hand.

    Parameters
    ----------
    holds : bool
        Whether it is.
    verdict : Verdict
        What follows from the dossier's evidence by its policy.
    sentence : str
        The answer in one line.
    """

    holds: bool
    verdict: Verdict
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def verify(
    dossier: Path | str,
    product: Path | str,
    *,
    policy: Policy | Path | str | None = None,
    table: Path | str | None = None,
    signature: Path | str | None = None,
    public_key: Path | str | None = None,
    verdict: Verdict | str | None = None,
) -> Verification:
    """Return whether the verdict of a dossier is about this product, and whatever else is given.

    Parameters
    ----------
    dossier : path
        A ``dossier.json``, or its folder.
    product : path
        The product, as it was named in the audit: its folder, or its file.
    policy : Policy, path or str, optional
        The rules that must have decided: ``"default"``, ``"strict"``, a TOML file or a policy.
    table : path, optional
        The table's file. It is recognised only with the key of the owner who ran the audit.
    signature, public_key : path, optional
        A signature of the dossier, by default the file beside it ending in ``.sig``, and the key of whoever must have signed. Without a
        key it is not known who wrote the dossier.
    verdict : Verdict or str, optional
        The verdict that it must have, such as ``"RELEASE"``.

    Returns
    -------
    Verification
        With ``holds``, ``verdict`` and ``sentence``.

    Raises
    ------
    InvalidInput
        If a file is not there or not what it should be.
    """
    file = dossier_file(dossier)
    text = read_text(file, what="dossier")
    derived = derive_again(Dossier.from_json(text))
    given = derived.dossier
    if signature is not None and public_key is None:
        raise InvalidInput(
            "a signature is given but not whose it must be; name the public key with --public-key."
        )
    required = None if verdict is None else _verdict(verdict)
    digests = _Digests(
        product=product_digest(product),
        policy=None if policy is None else policy_digest(_policy(policy)),
        table=None if table is None else table_file_digest(table),
    )
    failures = [*_failures(derived, digests)]
    signed = "not signed by anybody"
    if public_key is not None:
        where = file.with_name(file.name + ".sig") if signature is None else signature
        signed = f"signed by the owner of {Path(public_key).name}"
        if not is_signed_by(file, signature=where, public_key=public_key):
            failures.insert(0, f"the dossier was not {signed}, or was changed since")
    if required is not None and given.verdict != required:
        failures.append(f"the verdict is {given.verdict} and not {required}")
    if failures:
        sentence = f"NO: {'; '.join(failures)}."
        return Verification(holds=False, verdict=given.verdict, sentence=sentence)
    binding = given.binding
    assert binding is not None, "an unbound dossier fails above"
    by = f" by {binding.by}" if binding.by else ""
    sentence = (
        f"YES: {given.verdict} is about this product (SHA-256 {digests.product}) under the policy '{given.policy.name}'"
        f"{' as given' if policy is not None else ''}, against attackers who reach {', '.join(binding.access)}; judged "
        f"{binding.made}{by} with reticent {binding.reticent}, {signed}."
    )
    return Verification(holds=True, verdict=given.verdict, sentence=sentence)


def dossier_file(path: Path | str) -> Path:
    """Return the file of a dossier, given the file itself or its folder."""
    path = Path(path)
    return path / "dossier.json" if path.is_dir() else path


@dataclass(frozen=True, kw_only=True)
class _Digests:
    """Of the files at hand; None for what is not asked about."""

    product: str
    policy: str | None
    table: str | None


def _failures(derived: Derived, digests: _Digests) -> Iterator[str]:
    """Yield why a verdict is not about the files at hand."""
    binding: Binding | None = derived.dossier.binding
    if derived.disagreements:
        yield f"the dossier contradicts itself ({derived.disagreements[0].rstrip('.')})"
    if binding is None:
        yield "the dossier is bound to no product: the version that wrote it did not do so yet, so audit again"
        return
    if not binding.product:
        yield "the audited product was not stored, so the dossier is about no file; audit with --save-product, or with --product"
    elif binding.product != digests.product:
        yield f"the dossier is about the product {binding.product[:16]}…, and this one is {digests.product[:16]}…"
    if digests.policy is not None and digests.policy != binding.policy:
        yield f"it was decided by another policy, '{derived.dossier.policy.name}'"
    if digests.table is not None and digests.table != binding.table:
        yield "it is about another table, or the owner's key is not the one of the audit"


def _policy(policy: Policy | Path | str) -> Policy:
    return policy if isinstance(policy, Policy) else read_policy(policy)


def _verdict(verdict: Verdict | str) -> Verdict:
    try:
        return Verdict(verdict)
    except ValueError:
        raise InvalidInput(
            f"the verdict {verdict!r} is not known; use one of {', '.join(Verdict)}."
        ) from None
