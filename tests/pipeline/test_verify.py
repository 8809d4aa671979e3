"""A verdict is about one product, one policy and one table, and a signature says whose it is."""

import json
import shutil
import stat

import pytest
from sklearn.datasets import load_breast_cancer

import reticent
from reticent.errors import InvalidInput, OutputRefused
from reticent.pipeline import bound_to_product, derive_again, table_file_digest
from reticent.policy import read_policy
from reticent.product import FittedProduct, ProductFiles, Provenance, save_product
from reticent.report import Access, Dossier, make_keys, policy_digest, render_text, sign

# What is asked here does not depend on how strong the learned attacks are.


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A folder with a product and the dossier about it."""
    from sklearn.naive_bayes import GaussianNB

    folder = tmp_path_factory.mktemp("verify")
    X, y = load_breast_cancer(return_X_y=True)
    model = FittedProduct(estimator=GaussianNB().fit(X, y), classes=("0", "1"))
    save_product(folder / "product", model, Provenance())
    dossier = reticent.audit(
        "sklearn.naive_bayes.GaussianNB()", X, y, rounds=1, pool=0, minutes=0.05, workers=1, by="Ada"
    )  # fmt: skip
    bound_to_product(dossier, ProductFiles.of(folder / "product")).save(
        folder / "audit"
    )
    return folder


@pytest.fixture
def place(judged, tmp_path):
    return shutil.copytree(judged, tmp_path / "place")


def test_a_verdict_is_about_its_product(place):
    answer = reticent.verify(place / "audit", place / "product")
    assert answer.holds
    assert answer.sentence.startswith(f"YES: {answer.verdict} is about this product")
    assert "by Ada" in str(answer)
    assert "not signed by anybody" in answer.sentence
    assert "\n" not in answer.sentence


@pytest.mark.parametrize("change", ["added", "removed", "changed", "renamed"])
def test_another_product_is_noticed(place, change):
    file = place / "product" / "provenance.json"
    if change == "added":
        (place / "product" / "README").write_text("harmless")
    elif change == "removed":
        file.unlink()
    elif change == "renamed":
        file.rename(file.with_suffix(".bak"))
    else:
        file.write_text(file.read_text() + "\n")
    answer = reticent.verify(place / "audit", place / "product")
    assert not answer.holds
    assert "the dossier is about the product" in answer.sentence


def test_the_policy_is_compared_by_what_it_says(place):
    from importlib import resources

    text = resources.files("reticent.policy").joinpath("default.toml").read_text()
    (place / "same.toml").write_text("# a comment\n" + text)
    (place / "other.toml").write_text(text.replace("0.90", "0.80"))
    for policy, holds in (
        ("default", True),
        (read_policy("default"), True),
        (place / "same.toml", True),
        (place / "other.toml", False),
        ("strict", False),
    ):
        answer = reticent.verify(place / "audit", place / "product", policy=policy)
        assert answer.holds is holds


def test_a_policy_that_was_exchanged_in_the_dossier_is_noticed(place):
    file = place / "audit" / "dossier.json"
    content = json.loads(file.read_text())
    content["policy"]["limits"][0]["at_least"] = 0.1
    file.write_text(json.dumps(content))
    answer = reticent.verify(file, place / "product")
    assert not answer.holds
    assert "contradicts itself" in answer.sentence


def test_a_verdict_can_be_asked_for(place):
    given = reticent.verify(place / "audit", place / "product").verdict
    assert reticent.verify(place / "audit", place / "product", verdict=given).holds
    other = "REFUSE" if given != "REFUSE" else "RELEASE"
    assert not reticent.verify(place / "audit", place / "product", verdict=other).holds
    with pytest.raises(InvalidInput, match="use one of RELEASE, REFUSE"):
        reticent.verify(place / "audit", place / "product", verdict="release")


def test_the_table_is_known_by_its_keyed_digest(place, monkeypatch):
    (place / "people.csv").write_text("age,ill\n1,yes\n")
    file = place / "audit" / "dossier.json"
    content = json.loads(file.read_text())
    content["binding"]["table"] = table_file_digest(place / "people.csv")
    file.write_text(json.dumps(content))
    where = (file, place / "product")
    assert reticent.verify(*where, table=place / "people.csv").holds
    (place / "other.csv").write_text("age,ill\n1,no\n")
    assert not reticent.verify(*where, table=place / "other.csv").holds
    # Without the owner's key nobody can try tables out.
    monkeypatch.setenv("RETICENT_HOME", str(place / "stranger"))
    assert not reticent.verify(*where, table=place / "people.csv").holds


def test_an_older_dossier_is_read_and_says_that_it_is_bound_to_nothing(place):
    file = place / "audit" / "dossier.json"
    content = json.loads(file.read_text())
    del content["binding"]
    content["schema"] = "reticent-dossier-3"
    file.write_text(json.dumps(content))
    dossier = derive_again(Dossier.from_json(file.read_text())).dossier
    assert dossier.binding is None
    assert "bound to no product" in render_text(dossier)
    answer = reticent.verify(file, place / "product")
    assert not answer.holds
    assert "bound to no product" in answer.sentence


def test_a_product_that_was_not_stored_is_about_no_file(place):
    file = place / "audit" / "dossier.json"
    content = json.loads(file.read_text())
    content["binding"]["product"] = ""
    file.write_text(json.dumps(content))
    answer = reticent.verify(file, place / "product")
    assert not answer.holds
    assert "--save-product" in answer.sentence


def test_the_binding_says_when_by_whom_and_what_for(place):
    dossier = Dossier.from_json((place / "audit" / "dossier.json").read_text())
    binding = dossier.binding
    assert binding.made == "2023-11-14T22:13:20Z"  # the clock of tests
    assert binding.by == "Ada"
    assert binding.reticent == reticent.__version__
    assert binding.policy == policy_digest(read_policy("default"))
    assert binding.table.startswith("hmac-sha256:")
    assert binding.access == (Access.QUERIES, Access.FILE)
    assert "Ada" in (place / "audit" / "report.html").read_text()


def test_deciding_again_changes_nothing_that_was_not_changed(place):
    stated = Dossier.from_json((place / "audit" / "dossier.json").read_text())
    derived = derive_again(stated)
    assert derived.disagreements == ()
    assert derived.dossier == stated


def test_a_signature_says_whose_dossier_it_is(place):
    pytest.importorskip("cryptography", reason="the extra `sign` is not installed")
    private, public = make_keys(place / "key")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    with pytest.raises(OutputRefused, match="never replaced"):
        make_keys(place / "key")
    file = place / "audit" / "dossier.json"
    sign(file, key=private)
    where = (file, place / "product")
    signed = reticent.verify(*where, public_key=public)
    assert signed.holds
    assert "signed by the owner of key.pub" in signed.sentence
    # Somebody else's key.
    _, other = make_keys(place / "other")
    assert not reticent.verify(*where, public_key=other).holds
    # Evidence that fits itself, but was changed: only the signature can tell.
    content = json.loads(file.read_text())
    content["findings"] = []
    file.write_text(json.dumps(content))
    assert reticent.verify(*where).holds
    changed = reticent.verify(*where, public_key=public)
    assert not changed.holds
    assert "was changed since" in changed.sentence


def test_signatures_of_no_use_are_one_sentence(place):
    pytest.importorskip("cryptography", reason="the extra `sign` is not installed")
    private, public = make_keys(place / "key")
    file = place / "audit" / "dossier.json"
    where = (file, place / "product")
    with pytest.raises(InvalidInput, match="name the public key"):
        reticent.verify(*where, signature=file)
    with pytest.raises(InvalidInput, match="there is no signature"):
        reticent.verify(*where, public_key=public)
    (place / "audit" / "dossier.json.sig").write_text("AAAA\n")
    with pytest.raises(InvalidInput, match="has 3 bytes and not 64"):
        reticent.verify(*where, public_key=public)
    (place / "audit" / "dossier.json.sig").write_text("no base64!\n")
    with pytest.raises(InvalidInput, match="not Base64"):
        reticent.verify(*where, public_key=public)
    with pytest.raises(InvalidInput, match="no public key"):
        reticent.verify(*where, public_key=private)
    with pytest.raises(InvalidInput, match="no private key"):
        sign(file, key=public)
