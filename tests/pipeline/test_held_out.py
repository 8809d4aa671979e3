"""Who is held out, and what a synthetic table that was judged carries."""

import json
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import reticent
from reticent.audits import SyntheticTableKind
from reticent.errors import InvalidInput
from reticent.pipeline import (
    AuditPlan,
    GivenTables,
    HeldOutAudit,
    RealTable,
    Risk,
    SynthesisPlan,
    run_synthesis,
    with_people_held_out,
)
from reticent.pipeline._again import learn_again
from reticent.pipeline._case import Case
from reticent.pipeline._coins import HeldOut
from reticent.pipeline._held_out import divided
from reticent.pipeline._pool import PoolSize
from reticent.product import SyntheticTable, load_synthetic
from reticent.report import Dossier, render_html, render_text
from reticent.run import Effort, Run, Store
from reticent.train import MarginalGenerator
from reticent.train.marginals.noise import Noise


def people(n, rng=None):
    rng = rng or np.random.default_rng(0)
    low = rng.integers(50, 90, n)
    return pd.DataFrame(
        {"low": low, "high": low + rng.integers(1, 60, n), "ill": rng.random(n) < 0.3}
    )


def used_of(frame, *, share=0.2, seed=0, **how):
    audit = HeldOutAudit(share=share)
    return divided(RealTable(frame=frame, **how), audit, seed=seed)


def test_one_more_person_changes_nobody_elses_coin():
    """Tables that differ by the last person are divided alike but for that person; a shuffled split of fixed sizes would not do."""
    frame = people(1_000)
    whole, without = used_of(frame), used_of(frame[:-1])
    assert (whole[:-1] == without).all()
    shuffled = [np.isin(np.arange(n), np.random.default_rng(0).permutation(n)[: n // 5]) for n in (1_000, 999)]  # fmt: skip
    assert (shuffled[0][:-1] != shuffled[1]).any()


def test_people_are_held_out_whole_and_by_the_share_that_was_asked_for(monkeypatch, tmp_path):  # fmt: skip
    frame = people(3_000).assign(who=np.arange(3_000) // 3)
    used = used_of(frame, share=0.3, unit="who")
    by_person = used.reshape(-1, 3)
    assert (by_person.all(axis=1) | ~by_person.any(axis=1)).all()
    held = int((~by_person[:, 0]).sum())
    # Independent coins: the number held out is binomial, and outside of this once in a million.
    assert binom.ppf(0.5e-6, 1_000, 0.3) <= held <= binom.isf(0.5e-6, 1_000, 0.3)
    again = used_of(frame, share=0.3, unit="who")
    assert (again == used).all()
    other_seed = used_of(frame, share=0.3, unit="who", seed=1)
    assert (other_seed != used).any()
    # Whoever has another key throws other coins.
    monkeypatch.setenv("RETICENT_HOME", str(tmp_path))
    assert (used_of(frame, share=0.3, unit="who") != used).any()


def test_without_an_audit_everybody_is_used():
    real = RealTable(frame=people(300))
    assert divided(real, None, seed=0).all()
    parts = np.array(["defender", "reserved", "auxiliary"])[np.arange(300) % 3]
    by_part = RealTable(frame=people(300).assign(part=parts), part="part")
    for audit in (None, HeldOutAudit()):
        assert (divided(by_part, audit, seed=0) == (parts == "defender")).all()
    few = np.where(np.arange(300) < 290, "defender", "reserved")
    by_few = RealTable(frame=people(300).assign(part=few), part="part")
    assert divided(by_few, None, seed=0).sum() == 290
    with pytest.raises(InvalidInput, match="too few to audit"):
        divided(by_few, HeldOutAudit(), seed=0)


def test_an_interrupted_audit_makes_the_same_table_again(tmp_path, monkeypatch):
    """Killed after the table was written and before it was judged: the same command draws no noise, and writes the same bytes."""
    plan = SynthesisPlan(
        risk=Risk(epsilon=3.0), target="ill", constraints=("low < high",), audit=HeldOutAudit(),
    )  # fmt: skip
    out, real = tmp_path / "made.csv", RealTable(frame=people(600))
    run = Run(store=Store(folder=tmp_path / "kept"))

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(HeldOutAudit, "judge", killed)
    for turn in range(2):
        with pytest.raises(KeyboardInterrupt):
            run_synthesis(real, plan, out=out, run=run)
        if turn == 0:
            written = out.read_bytes()
            monkeypatch.setattr(Noise, "on_counts", killed)
            monkeypatch.setattr(Noise, "choose", killed)
    assert out.read_bytes() == written
    assert load_synthetic(out).provenance.split["by"] == "held out"


def test_a_second_table_of_the_same_records_is_said_to_cost_again(tmp_path):
    out = tmp_path / "made.csv"
    frame = people(500)
    first = reticent.synthesize(frame, epsilon=3, audit=False, out=out)
    assert not any("add up" in words for words in first.table.warnings)
    second = reticent.synthesize(frame, epsilon=3, audit=False, out=out)
    assert any("add up" in words for words in second.table.warnings)
    other = reticent.synthesize(people(501), epsilon=3, audit=False, out=out)
    assert not any("add up" in words for words in other.table.warnings)


def test_all_samples_of_a_fit_share_one_guarantee(tmp_path, monkeypatch):
    frame = people(500)
    synthesizer = reticent.Synthesizer(
        epsilon=3, target="ill", constraints=["low < high"]
    )
    fitted = synthesizer.fit(frame)

    def spent(*_, **__):
        raise AssertionError("a sample must ask the records nothing")

    monkeypatch.setattr(Noise, "on_counts", spent)
    monkeypatch.setattr(Noise, "choose", spent)
    samples = [fitted.sample(200, seed=seed) for seed in (1, 2, 1)]
    assert samples[0].equals(samples[2])
    assert not samples[0].equals(samples[1])
    for made in samples:
        assert (made["low"] < made["high"]).all()
        assert made["ill"].dtype == bool
    saved = fitted.drawn(50, seed=1).save(tmp_path / "made.parquet")
    stated = load_synthetic(saved).provenance.guarantee
    assert stated.epsilon == fitted.guarantee.epsilon <= 3
    assert any("constraints" in words for words in stated.public)
    with pytest.raises(InvalidInput, match="between 20"):
        fitted.sample(3)
    with pytest.raises(InvalidInput, match="exactly one target"):
        reticent.Synthesizer().fit(frame)


# --- a table that is audited again later ---


def written(folder, monkeypatch, frame=None, *, seed=0, **how):
    """Return the file of a table that was made with people held out, without the time of its audit."""
    monkeypatch.setattr(HeldOutAudit, "judge", lambda *_, **__: None)
    plan = SynthesisPlan(
        risk=Risk(epsilon=3.0), audit=HeldOutAudit(share=0.3), seed=seed, **how
    )
    out = folder / "made.csv"
    real = RealTable(frame=people(400) if frame is None else frame)
    run_synthesis(real, plan, out=out, run=Run(seed=seed))
    return out


def side_file(out):
    return out.with_name(f"{out.name}.provenance.json")


def again(out, frame, **how):
    return with_people_held_out(
        GivenTables(synthetic=load_synthetic(out), real=frame, **how)
    )


def test_the_owner_finds_the_people_again_who_were_held_out(tmp_path, monkeypatch):
    frame = people(400)
    out = written(tmp_path, monkeypatch, seed=7)
    used = used_of(frame, share=0.3, seed=7)
    given = again(out, frame)
    pd.testing.assert_frame_equal(given.real, frame[used])
    pd.testing.assert_frame_equal(given.holdout, frame[~used])
    assert [finding.name for finding in given.findings] == ["held_out_again"]
    table = given.prepared(seed=0).table
    assert [f.name for f in table.findings].count("held_out_again") == 1
    # Whoever names people is believed as before.
    others = people(60, np.random.default_rng(1))
    assert again(out, frame, holdout=others).holdout is others
    assert again(out, frame, part="part").holdout is None
    # Of a table that was made from everybody nobody was held out.
    everybody = tmp_path / "all.csv"
    reticent.synthesize(frame, epsilon=3, audit=False, out=everybody)
    assert again(everybody, frame).holdout is None


def test_only_the_tables_that_were_sealed_are_divided_again(tmp_path, monkeypatch):
    """A file that a stranger could have written says nothing about who was held out."""
    frame = people(400)
    out = written(tmp_path, monkeypatch)
    changed = frame.copy()
    changed.loc[3, "high"] += 1
    for other in (changed, frame[:-1], frame[::-1], frame.assign(more=1)):
        with pytest.raises(InvalidInput, match=r"not the one that the synthetic table was made from.*--holdout.*--part"):  # fmt: skip
            again(out, other)
    assert again(out, frame.assign(more=1), drop=["more"]).holdout is not None
    side, rows = side_file(out), out.read_bytes()
    stated = json.loads(side.read_text())
    kept = side.read_text()
    other = written(tmp_path, monkeypatch, seed=1)
    of_other_seed = json.loads(side_file(other).read_text())["split"]
    wrong_splits = [
        {**stated["split"], "division": of_other_seed["division"]},
        {**stated["split"], "share": "0.5"},
        {**stated["split"], "share": "many"},
        {name: words for name, words in stated["split"].items() if name != "seal"},
        {"by": "held out"},
        of_other_seed,  # a genuine seal, but that of another file
    ]
    out.write_bytes(rows)
    for split in wrong_splits:
        side.write_text(json.dumps({**stated, "split": split}))
        with pytest.raises(InvalidInput, match="not as reticent synthesize wrote it"):
            again(out, frame)
    # The records themselves in the place of the table: without the seal everybody would be in it, and no attack could tell members from others.
    side.write_text(kept)
    assert again(out, frame).holdout is not None
    frame.to_csv(out, index=False)
    with pytest.raises(InvalidInput, match="not as reticent synthesize wrote it"):
        again(out, frame)


def test_without_the_owners_key_nobody_learns_who_was_held_out(tmp_path, monkeypatch):
    frame = people(400)
    out = written(tmp_path, monkeypatch)
    monkeypatch.setenv("RETICENT_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(InvalidInput, match=r"owner's key .* is not in .*elsewhere.*--holdout"):  # fmt: skip
        again(out, frame)
    assert not (tmp_path / "elsewhere").exists()
    # Another owner's key throws other coins for the same name.
    stated = json.loads(side_file(out).read_text())["split"]
    division = HeldOut(share=0.3, name=stated["division"])
    table = RealTable(frame=frame).table
    by_other_key = division.members(table)
    with pytest.raises(InvalidInput, match="another owner's key"):
        again(out, frame)
    monkeypatch.undo()
    assert (division.members(table) != by_other_key).any()


def test_the_files_that_are_released_are_the_same_whoever_was_held_out(tmp_path, monkeypatch):  # fmt: skip
    """Everybody has a twin. Whichever twins are held out, the generator sees the same records; then both files have the same bytes, the seal included."""
    half = people(300)
    frame = pd.concat([half, half], ignore_index=True)
    files = []
    for first in (True, False):
        is_first = np.arange(600) < 300
        with monkeypatch.context() as patch:
            patch.setattr(HeldOut, "members", lambda *_, side=is_first == first: side)
            folder = tmp_path / str(first)
            folder.mkdir()
            out = written(folder, patch, frame, seeded=True)
        files.append((out.read_bytes(), side_file(out).read_bytes()))
    assert files[0] == files[1]
    # With other coins as they are thrown, only the name of the division and the keyed seal of the new rows differ.
    out = written(tmp_path, monkeypatch, frame, seed=0)
    stated = json.loads(side_file(out).read_text())
    other = json.loads(side_file(written(tmp_path, monkeypatch, frame, seed=1)).read_text())  # fmt: skip
    for notes in (stated, other):
        split = notes["split"]
        assert split.pop("seal").startswith("hmac-sha256:")
        assert len(split.pop("division")) == 32
    assert stated == other


DOMAIN = "[numbers]\nlow = [40, 100]\nhigh = [40, 160]\n"


@pytest.fixture
def declared(tmp_path):
    (tmp_path / "domain.toml").write_text(DOMAIN)
    return tmp_path / "domain.toml"


@pytest.fixture
def quick(monkeypatch):
    """As few shadow tables and runs again as there can be: what is asked is whether there are any."""
    monkeypatch.setattr("reticent.pipeline._held_out.SHADOWS", 4)
    monkeypatch.setattr("reticent.pipeline._reruns.MOST_RUNS", 20)


def test_a_recipe_with_a_declared_domain_is_attacked_with_its_own_tables(quick, declared):  # fmt: skip
    """The audit that follows the making has the recipe at hand, and reads no file because another file says so."""
    # 280 people are held out in the mean; the 200 that shadow generators need are missed less often than once in a million.
    made = reticent.synthesize(people(700), target="ill", epsilon=3, domain=declared, held_out=0.4)  # fmt: skip
    assert "domain=" in made.table.provenance.recipe
    evidence = made.dossier.evidence
    assert evidence.pool.models == 4
    (learned,) = [a for a in evidence.attacks if a.name == "shadow_table"]
    assert learned.family == "trains others"
    (targets,) = evidence.pool.targets
    assert (targets.name, targets.targets) == ("shadow_table", 4)
    text = " ".join(render_text(made.dossier, width=200).split())
    assert "4 shadow generators were trained by the product's recipe" in text
    assert made.dossier.epsilons.proven == pytest.approx(made.guarantee.epsilon)
    # Whoever repeats the audit names the recipe.
    assert f"generator={made.table.provenance.recipe!r}" in made.dossier.repeat
    assert not [f for f in made.dossier.findings if f.name == "recipe_not_run"]


def test_few_people_held_out_are_audited_without_shadow_generators(quick, declared):
    """A recipe needs 100 records, and half of those held out are too few of them: the table is judged without, and not lost after its budget was spent."""
    made = reticent.synthesize(people(600), target="ill", epsilon=3, domain=declared, held_out=0.2)  # fmt: skip
    assert made.dossier.evidence.pool is None
    assert "shadow generators" in render_text(made.dossier, width=200)


def test_a_named_recipe_with_a_declared_domain_makes_shadow_tables(quick, declared, tmp_path):  # fmt: skip
    real, others = people(300), people(600, np.random.default_rng(1))
    file = tmp_path / "made.csv"
    made = reticent.synthesize(real, epsilon=3, domain=declared, audit=False, out=file)
    both = {"synthetic": file, "real": real, "holdout": others, "y": "ill", "workers": 1}  # fmt: skip
    unnamed = reticent.audit(**both)
    assert unnamed.evidence.pool is None
    (note,) = [f for f in unnamed.findings if f.name == "recipe_not_run"]
    assert "sets 'domain'" in note.text
    assert "--generator" in note.text
    named = reticent.audit(**both, generator=made.table.provenance.recipe, pool=4)
    assert named.evidence.pool.models == 4
    assert named.epsilons.proven == pytest.approx(made.guarantee.epsilon)
    assert not [f for f in named.findings if f.name == "recipe_not_run"]


def test_shadow_tables_have_the_declared_values(declared):
    """No record has more than 89, but the domain allows it: shadow tables are made of what was declared and not of what was seen."""
    given = GivenTables(
        synthetic=SyntheticTable(people(200)),
        real=people(200),
        holdout=people(400),
        made_by=MarginalGenerator(domain=str(declared), noise_multiplier=9.0),
    )
    generator = given.prepared(seed=0).generator(None)
    assert generator.made_by.domain == str(declared)
    shadow = generator.train(given.prepared(seed=0).members, seed=0).frame
    assert shadow["low"].max() > 89
    before = generator.content()
    declared.write_text(DOMAIN.replace("100", "101"))
    assert generator.content() != before


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "cannot be read"),
        ("[numbers]\nlow = [0, 1]\nage = [0, 1]\n", "declares the column 'age'"),
        (DOMAIN.replace("[40, 100]", "40"), "declares 40 for the column 'low'"),
        ('constraints = ["age > 3"]\n' + DOMAIN, "age"),
    ],
    ids=["missing", "other column", "no range", "constraint"],
)
def test_a_domain_that_does_not_fit_is_refused_before_anything_is_trained(declared, content, match):  # fmt: skip
    given = GivenTables(
        synthetic=SyntheticTable(people(200)), real=people(200), holdout=people(400)
    )
    prepared = given.prepared(seed=0)
    declared.unlink() if content is None else declared.write_text(content)
    with pytest.raises(InvalidInput, match=match):
        prepared.generator(f"reticent.MarginalGenerator(domain={str(declared)!r})")


def test_what_a_table_is_good_for_is_said_of_it_and_of_its_recipe(quick, tmp_path):
    """The generator that stands beside the table is run again on the same members; without it, the intervals speak of this table alone."""
    real, others = people(300), people(600, np.random.default_rng(1))
    # Something to learn: more of those with a high pressure are ill.
    real, others = (frame.assign(ill=frame["low"] + 20 * frame["ill"] > 72) for frame in (real, others))  # fmt: skip
    made = reticent.synthesize(real, target="ill", epsilon=6, audit=False)
    both = {"real": real, "holdout": others, "y": "ill", "workers": 1}
    with_recipe = reticent.audit(synthetic=made.table, pool=4, watch=2, **both)
    recipe = with_recipe.evidence.synthetic.recipe
    assert recipe.tables == 3
    this = with_recipe.evidence.synthetic.use
    for of_this, of_recipe in zip(this.judges, recipe.judges, strict=True):
        assert of_this.judge == of_recipe.judge
        assert of_this.transfer.auc_real.value == pytest.approx(of_recipe.transfer.auc_real.value, abs=0.02)  # fmt: skip
        assert of_this.transfer.auc_loss.covers == "product"
        assert of_recipe.transfer.auc_loss.covers == "trainer"
        assert of_recipe.transfer.tables == 3
    assert recipe.saved.covers == "trainer"
    assert recipe.saved.low > 0
    assert with_recipe.evidence.synthetic.described.loss.loss.covers == "product"
    assert recipe.loss.tables == 3
    # Spaces inside an interval do not break, and a small loss is written with "<".
    page = unescape(render_html(with_recipe)).replace("\N{NO-BREAK SPACE}", " ")
    for each in (recipe.loss.loss, recipe.loss.train.mean, recipe.loss.test.mean):
        assert each.covers == "trainer"
        assert str(each) in page
    for width in (80, 100, 140):
        text = render_text(with_recipe, width=width)
        start = text.index("What can be learned from it")
        assert "…" not in text[start : text.index("Singling out, linkability")]
    assert "3 tables were made again of the same members" in " ".join(text.split())
    assert "The same generator made 3 tables again" in " ".join(text.split())
    again = Dossier.from_json(with_recipe.to_json())
    assert again.evidence.synthetic.recipe == recipe

    alone = reticent.audit(synthetic=made.frame, **both)
    assert alone.evidence.synthetic.recipe is None
    for page in (" ".join(render_text(alone, width=100).split()), render_html(alone)):
        assert "speak of this table alone, not of its recipe" in page
        assert "speak of this table alone: its generator was not run again" in page


def test_tables_are_made_again_half_as_often_as_there_are_shadow_tables():
    """The number follows from that of the pool, and neither from the clock nor from any result; without a pool there are none."""
    given = GivenTables(
        synthetic=SyntheticTable(people(120)),
        real=people(120),
        holdout=people(240),
        made_by=MarginalGenerator(noise_multiplier=3.0),
        target="ill",
    )
    prepared = given.prepared(seed=0)
    plan = AuditPlan(
        trainer=prepared.generator(None),
        product=prepared.synthetic,
        of_kind=SyntheticTableKind("ill"),
    )

    def made_again(models, plan=plan, **effort):
        run = Run(effort=Effort(**effort))
        case = Case.of(prepared.table, plan, None, run)
        size = PoolSize(models=models, chosen="asked for")
        return learn_again(case, size, run)

    assert made_again(0) is None
    assert made_again(64, deadline=1e-9) is None
    assert made_again(64, plan=replace(plan, trainer=None)) is None
    assert made_again(4).tables == 3
    assert made_again(64).tables == 6
