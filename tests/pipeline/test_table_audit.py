"""Audits of synthetic tables whose leak is known: verdicts, findings, what the report holds and what it does not."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import reticent
from made_tables import copied, copied_among, mixed, people, resampled
from reticent.attack.synthetic import Tables
from reticent.audits import SYNTHETIC_TABLE, Sides, contents_of_table, transfer_of
from reticent.data import Coder, in_columns_of, table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions, InvalidTable
from reticent.pipeline import derive_again
from reticent.policy import Verdict, read_policy
from reticent.product import SyntheticTable
from reticent.report import Dossier, render_html, render_text
from reticent.run import stream

N = 700  # members: leaks of the size made here are beyond doubt, and an audit takes seconds


@pytest.fixture(scope="module")
def world():
    rng = stream(0, "test/table audit")
    return {
        "real": people(N, rng),
        "holdout": people(2 * N, rng),
        "fresh": people(N, rng),
        "rng": rng,
    }


def audited(world, synthetic, **settings):
    return reticent.audit(
        synthetic=synthetic,
        real=world["real"],
        holdout=world["holdout"],
        **{"y": "ill", "workers": 1, **settings},
    )


@pytest.fixture(scope="module")
def of_copula(world):
    return audited(world, resampled(world["real"], world["rng"]))


@pytest.fixture(scope="module")
def of_fresh(world):
    return audited(world, world["fresh"])


def test_a_copied_table_is_refused(world):
    dossier = audited(world, copied(world["real"], world["rng"]))
    assert dossier.verdict == Verdict.REFUSE
    assert dossier.privacy.high < 0.1
    assert any("whole rows of 700 members" in reason for reason in dossier.reasons)
    # A table of copies is of use all the same; it is the privacy that is broken.
    assert dossier.check("gain").outcome == "kept"
    assert any("Do not delete the copied rows" in step for step in dossier.decision.next_steps)  # fmt: skip


def test_copies_of_a_fifth_are_refused_although_the_accuracy_is_near_chance(world):
    table = copied_among(world["real"], world["fresh"], 0.2, world["rng"])
    dossier = audited(world, table)
    assert dossier.verdict == Verdict.REFUSE
    assert dossier.check("file_records").outcome == "broken"
    assert dossier.privacy.value > 0.7


def test_a_table_that_mixes_neighbours_is_refused_by_distances(world):
    dossier = audited(world, mixed(world["real"], world["rng"]))
    assert dossier.verdict == Verdict.REFUSE
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    assert by_name["distance_ratio"].auc.low > 0.5


def test_a_resampling_copula_is_refused_although_no_distance_sees_it(of_copula):
    assert of_copula.verdict == Verdict.REFUSE
    by_name = {attack.name: attack for attack in of_copula.evidence.attacks}
    assert by_name["exact_values"].auc.low > 0.55
    for name in ("rank_distance", "gower_distance", "identical_rows"):
        assert by_name[name].auc.low < 0.5
    # What to do is named by column, with what rounding would leave.
    assert any("Round 'age'" in step for step in of_copula.decision.next_steps)


def test_fresh_people_are_not_refused_and_the_number_needed_is_said(of_fresh):
    assert of_fresh.verdict == Verdict.INCONCLUSIVE
    assert all(control.behaved for control in of_fresh.controls)
    assert any("rows (now" in step for step in of_fresh.decision.next_steps)
    assert of_fresh.check("file_records").outcome == "kept"
    assert not of_fresh.evidence.synthetic.leaking


@pytest.mark.slow
def test_fresh_people_are_released_where_it_can_be_known():
    rng = stream(0, "test/table release")
    count = 12_000
    dossier = reticent.audit(
        synthetic=people(count, rng),
        real=people(count, rng),
        holdout=people(count, rng),
        auxiliary=people(count, rng),
        y="ill",
        workers=1,
    )
    assert dossier.verdict == Verdict.RELEASE, dossier.reasons


def test_the_report_shows_no_record_no_rare_value_and_no_small_count(world, of_copula):
    page = render_html(of_copula) + render_text(of_copula, width=200)
    # Ages in days are nearly all different, and of five digits: none may stand in the report.
    ages = {str(age) for age in world["real"]["age"] if age > 9_999}
    numbers = {word.strip(".,;()[]'\"<>") for word in page.split()}
    assert not ages & numbers
    assert "May this synthetic table be released?" in page
    assert "Of 1,000 people in your table" in page
    assert "Who is exposed, and by what" in page


def test_the_report_says_among_how_many_rows_the_nearest_were_looked_for(
    world, of_fresh, monkeypatch
):
    words = "The nearest rows were looked for among"
    assert of_fresh.evidence.synthetic.searched is None
    assert words not in render_text(of_fresh, width=200)
    monkeypatch.setattr("reticent.attack.synthetic._nearest.MOST_ROWS", N - 1)
    dossier = audited(world, world["fresh"])
    assert dossier.evidence.synthetic.searched == N - 1
    page = " ".join(render_text(dossier, width=200).split())
    assert f"{words} {N - 1} evenly spaced rows of each table that has more" in page
    assert Dossier.from_json(dossier.to_json()) == dossier


def tables_of(real, others, made):
    """Return the tables of an audit as attackers have them; those who are compared with are the records themselves."""
    table = table_from_frame(pd.concat([real, others], ignore_index=True), target=None)
    coder = Coder(table.features, table.schema)
    coded = coder.code(table.features)
    released = in_columns_of(made, table.features, table.schema).frame
    return Tables(
        records=coded,
        synthetic=coder.code(released),
        auxiliary=coded,
        names=coder.names,
    )


def small_numbers(part, path=""):
    """Yield where a part of a dossier has a number of people between one and the smallest group."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from small_numbers(value, f"{path}.{name}")
    elif isinstance(part, list):
        for value in part:
            yield from small_numbers(value, path)
    elif isinstance(part, int) and not isinstance(part, bool) and 0 < part < 20:
        yield path


def test_the_dossier_has_no_small_count_of_people_either(world, of_copula):
    """Seven copied rows are a number of few people; the twin counts them, as the audit does before it hides them."""
    written = json.loads(of_copula.to_json())["evidence"]
    # How many values and columns there are is not a number of people.
    allowed = {".rare_values", ".smallest_group", ".rows.among", ".values.among"}
    assert set(small_numbers(written["file"])) <= allowed
    assert not set(small_numbers(written["synthetic"]["isolated"]))
    real, others = world["real"], world["holdout"]
    made = pd.concat([real.iloc[:7], others.iloc[:N]], ignore_index=True)
    tables, tags = tables_of(real, others, made), np.arange(3 * N) < N
    hidden = contents_of_table(tables, tags, np.arange(3 * N), smallest_group=20)
    assert (hidden.rows.members, hidden.rows.nonmembers) == (0, N)
    assert hidden.rows.beyond.low == 0
    exact = contents_of_table(tables, tags, np.arange(3 * N), smallest_group=1)
    assert exact.rows.members == 7


def everything(part):
    """Yield every text and number of a dossier."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield name
            yield from everything(value)
    elif isinstance(part, list):
        for value in part:
            yield from everything(value)
    else:
        yield part


# Numbers of models, tables, columns, categories and steps, none of which is a number of people.
COUNTS_OF_THINGS = {
    ".file.rare_values",
    ".file.smallest_group",
    ".file.rows.among",
    ".file.values.among",
    ".synthetic.described.loss.tables",
    ".synthetic.described.correlations.pair",
    *(f".synthetic.described.rare.{name}" for name in ("rare", "missing", "below", "emitted", "new")),
    ".synthetic.use.judges.transfer.tables",
}  # fmt: skip


def test_a_collapsed_table_with_rare_values_is_described_without_naming_one():
    """Three members alone live in a hamlet and one weighs as much as nobody else; the table emits both, and has forgotten the old and a rare town.

    The twin of every search is that the values stand in the real table.
    """
    rng = stream(0, "test/rare values")
    real, others, fresh = people(600, rng), people(1_200, rng), people(400, rng)
    for frame, count in ((real, 25), (others, 52)):
        frame.loc[frame.index[-count:], "town"] = "Rarely-on-Sea"
    real.loc[:2, "town"] = "Hiddenhamlet"
    real.loc[0, "weight"] = 987.6
    made = fresh[fresh["age"] < fresh["age"].quantile(0.4)]
    made = pd.concat([made, made, real.head(3)], ignore_index=True)
    dossier = audited({"real": real, "holdout": others}, made)
    written = json.loads(dossier.to_json())
    pages = render_html(dossier) + render_text(dossier, width=200)
    few = {c: real[c].value_counts()[lambda n: n < 20].index for c in real}
    texts = {str(v) for c in ("town", "sex", "ill") for v in few[c]}
    assert "Hiddenhamlet" in texts
    numbers = {float(v) for v in [*few["age"], *few["weight"]] if len(str(v)) >= 5}
    assert 987.6 in numbers
    for found in everything(written):
        if isinstance(found, str):
            assert not any(text in found for text in texts)
        else:
            assert found not in numbers
    words = {word.strip(".,;()[]'\"<>%") for word in pages.split()}
    assert not {f"{n:g}" for n in numbers if n > 9_999 or n == 987.6} & words
    assert not any(text in pages for text in texts)
    assert set(small_numbers(written["evidence"])) <= COUNTS_OF_THINGS
    # What it has lost is said in shares and counts of categories.
    described = dossier.evidence.synthetic.described
    assert described.coverage.lost.low > 0.05
    assert described.rare.missing >= 1
    assert described.rare.emitted >= 1
    assert "a generator that forgets kinds of people leaves many" in pages
    assert f"the synthetic table lacks {described.rare.missing};" in pages


def test_models_that_learned_from_the_table_stand_beside_those_of_the_real_one(world, of_copula, of_fresh):  # fmt: skip
    """A table of fresh people loses nothing; one whose columns are shuffled, the twin, loses what there is to learn."""
    for dossier in (of_copula, of_fresh):
        use = dossier.evidence.synthetic.use
        assert (use.target, len(use.judges)) == ("ill", 3)
        for judge in use.judges:
            found = judge.transfer
            assert found.auc_real.low > 0.6
            assert found.auc_synthetic.value > 0.6
            assert found.ap_real.low <= found.ap_real.value <= found.ap_real.high
        assert use.positive.difference.low < 0 < use.positive.difference.high
    fresh = of_fresh.evidence.synthetic.use
    assert all(judge.transfer.auc_loss.low < 0.02 for judge in fresh.judges)
    tables = tables_of(world["real"], world["holdout"], world["fresh"].apply(world["rng"].permutation))  # fmt: skip
    sides = Sides(np.arange(3 * N) < N, np.arange(3 * N))
    shuffled = transfer_of(tables, sides, target="ill", level=0.95, smallest=20, seed=0)
    assert all(judge.transfer.auc_loss.low > 0.1 for judge in shuffled.judges)
    page = render_html(of_fresh)
    assert "What can be learned from it" in page
    assert "must not be used for others" in page


@pytest.mark.parametrize("width", [80, 90, 100, 120])
def test_the_text_cuts_no_interval(of_copula, of_fresh, width):
    for dossier in (of_copula, of_fresh):
        text = render_text(dossier, width=width)
        # Digests are shortened, and nothing else is.
        assert "…" not in text.split("What this verdict is about")[0]
        assert not re.search(
            r"\[[^\]]*$", text.split("How to repeat it")[0], re.MULTILINE
        )


def test_the_dossier_is_read_back_and_decided_again(of_copula):
    read = Dossier.from_json(of_copula.to_json())
    derived = derive_again(read)
    assert derived.dossier.verdict == of_copula.verdict
    assert not derived.disagreements
    assert derived.dossier.kind_sections == SYNTHETIC_TABLE.sections


def test_a_part_column_stands_for_a_holdout_and_gives_the_same_scores(world, of_fresh):
    whole = pd.concat(
        [
            world["real"].assign(part="defender"),
            world["holdout"].assign(part="reserved"),
        ],
        ignore_index=True,
    )
    dossier = reticent.audit(
        synthetic=world["fresh"], real=whole, parts="part", y="ill", workers=1
    )
    assert [a.auc for a in dossier.evidence.attacks] == [
        a.auc for a in of_fresh.evidence.attacks
    ]


def test_differences_between_the_tables_are_findings(world):
    table = world["fresh"].assign(person=np.arange(N)).drop(columns="smoker")
    table["town"] = table["town"].where(table["town"] != "town 3", "elsewhere")
    table["weight"] = table["weight"].round()
    table["pressure"] = table["pressure"].astype(object).where(table.index != 5, "high")
    dossier = audited(world, table)
    found = {finding.name: finding for finding in dossier.findings}
    assert "'smoker'" in found["missing_columns"].text
    assert "'person'" in found["not_judged"].text
    assert "'town'" in found["new_categories"].text
    assert "'weight'" in found["coarser_numbers"].text
    assert "'pressure'" in found["other_type"].text
    # A column that nobody looked at forbids a release, and nothing else.
    assert dossier.verdict == Verdict.INCONCLUSIVE
    assert any("'person'" in reason for reason in dossier.reasons)


@pytest.mark.slow
def test_people_and_not_rows_are_counted(world):
    def twice(frame, first):
        return pd.concat([frame, frame], ignore_index=True).assign(
            who=np.tile(np.arange(len(frame)) + first, 2)
        )

    dossier = reticent.audit(
        synthetic=world["fresh"],
        real=twice(world["real"].iloc[:300], 0),
        holdout=twice(world["holdout"].iloc[:600], 1_000),
        units="who",
        workers=1,
    )
    assert dossier.evidence.members == 300
    assert dossier.evidence.nonmembers == 300
    # Nobody is both judged and compared with.
    assert dossier.records["auxiliary"] == 600


def test_without_anybody_else_it_is_said_what_cannot_be_known(world):
    with pytest.raises(InvalidInput, match="INCONCLUSIVE: there is nobody to compare"):
        reticent.audit(synthetic=world["fresh"], real=world["real"])


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"real": None}, InvalidInput, "no real table"),
        ({"synthetic": None}, InvalidInput, "nothing to audit"),
        ({"y": "income"}, InvalidTable, "no column 'income'"),
        ({"y": np.zeros(3)}, InvalidInput, "must be the name of a column"),
        ({"parts": "part"}, InvalidInput, "given twice"),
        ({"holdout": pd.DataFrame({"age": range(90)})}, InvalidTable, "lacks the column"),
        ({"synthetic": pd.DataFrame({"x": range(90)})}, InvalidTable, "none of the columns"),
        ({"synthetic": pd.DataFrame({"age": range(9)})}, InvalidTable, "has 9 rows"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(world, change, error, match):
    given = {k: world[k] for k in ("real", "holdout")} | {"synthetic": world["fresh"]}
    with pytest.raises(error, match=match):
        reticent.audit(**(given | change))


def test_too_small_a_holdout_cannot_be_halved(world):
    with pytest.raises(InvalidInput, match="has 30 people"):
        reticent.audit(
            synthetic=world["fresh"],
            real=world["real"],
            holdout=world["holdout"].iloc[:30],
        )


def test_a_table_is_saved_and_loaded_with_its_digest(world, tmp_path):
    from reticent.product import (
        Provenance,
        load_product,
        load_synthetic,
        product_digest,
        save_product,
    )

    table = SyntheticTable(world["fresh"])
    save_product(tmp_path / "a", table, Provenance(recipe="fresh people"))
    loaded = load_synthetic(tmp_path / "a")
    assert loaded.content() == table.content()
    assert loaded.provenance.recipe == "fresh people"
    before = product_digest(tmp_path / "a")
    other = SyntheticTable(world["fresh"].iloc[::-1].reset_index(drop=True))
    assert other.content() != table.content()
    save_product(tmp_path / "a", other, Provenance())
    assert product_digest(tmp_path / "a") != before
    with pytest.raises(InvalidInput, match="holds a synthetic table and no model"):
        load_product(tmp_path / "a", classes=("no", "yes"))


def test_required_attacks_that_are_left_out_forbid_a_release(world, of_fresh):
    policy = read_policy("default")
    more = {**policy.required_attacks, "any": ("retraining",)}
    strict = replace(policy, required_attacks=more)
    dossier = audited(world, world["fresh"], policy=strict)
    assert any("'retraining'" in reason for reason in dossier.reasons)
    assert not any("'retraining'" in reason for reason in of_fresh.reasons)


def test_a_critic_is_attacked_with_its_own_scores(world):
    """A critic that has learned its real rows by heart is refused, whatever the table; one that knows nobody in particular is not."""
    by_heart = set(world["real"]["age"])

    def overfitted(frame):
        return frame["age"].isin(by_heart).to_numpy(float)

    dossier = audited(world, world["fresh"], critic=overfitted)
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    assert dossier.verdict == Verdict.REFUSE
    assert by_name["critic"].auc.low > 0.9
    assert by_name["critic"].family == "looks inside"
    assert all(control.behaved for control in dossier.controls)
    with pytest.raises(InvalidPredictions, match="failed with KeyError"):
        audited(world, world["fresh"], critic=lambda frame: frame["absent"])
    with pytest.raises(InvalidPredictions, match="one number per record"):
        audited(world, world["fresh"], critic=lambda frame: [1.0])


@pytest.mark.slow
def test_the_critic_of_our_own_gan_is_caught_by_its_file(tmp_path):
    """Trained on few people until it knows them, it is refused whatever the table; trained on others of the same source, it is not."""
    rng = stream(0, "test/critic of our own")
    names = [f"c{j}" for j in range(60)]
    real, strangers, holdout = (
        pd.DataFrame(rng.standard_normal((n, 60)).round(3), columns=names)
        for n in (60, 60, 200)
    )
    overtrained = reticent.HealthGAN(steps=300, rate=1e-3, with_critic=True)
    attacks = {}
    for whose, trained_on in (("own", real), ("strangers", strangers)):
        made = overtrained.train(table_from_frame(trained_on, target=None), seed=0)
        made.frame.to_csv(tmp_path / f"{whose}.csv", index=False)
        file = made.critic.save(tmp_path / whose)
        # The table of strangers in both audits, so that only the critics differ.
        dossier = reticent.audit(
            synthetic=strangers, real=real, holdout=holdout, critic=file, workers=1
        )
        attacks[whose] = next(a for a in dossier.evidence.attacks if a.name == "critic")
        finding = next(f for f in dossier.findings if f.name == "critic_released")
        assert "no epsilon covers it" in finding.text
        # Columns that have nothing to do with each other are of no use, which is refused too; it is the privacy that is asked about.
        broken = dossier.check("privacy").outcome == "broken"
        assert broken == (whose == "own"), dossier.reasons
    assert attacks["own"].auc.low > 0.6
    assert attacks["strangers"].auc.low < 0.5


@pytest.mark.slow
def test_shadow_generators_are_an_ordinary_pool(world, tmp_path, monkeypatch):
    (tmp_path / "toy_generator.py").write_text(GENERATOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    import toy_generator

    synthetic = toy_generator.make(world["real"], N, 1)
    dossier = audited(
        world, synthetic, generator="toy_generator:make", pool=4, claimed_epsilon=0.01
    )
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    assert by_name["shadow_table"].auc.low > 0.55
    assert by_name["shadow_table"].family == "trains others"
    assert dossier.evidence.pool.models == 4
    assert dossier.verdict == Verdict.REFUSE
    # A bold claim is refuted by the attacks' lower bound.
    assert dossier.epsilons.claimed == 0.01
    assert dossier.epsilons.audited.low > 0.01
    assert all(control.behaved for control in dossier.controls)


GENERATOR = '''
import numpy as np
import pandas as pd


def make(frame, rows, seed):
    """Draw every column from its observed values."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({c: rng.choice(frame[c].to_numpy(), rows) for c in frame})
'''
