"""A critic that is released: what its file holds, what reading it refuses, and whom its scores give away."""

import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from reticent.data import builtin_table, table_from_frame
from reticent.errors import InvalidInput, OutputRefused
from reticent.run import pack, stream
from reticent.train import HealthGAN, ReleasedCritic, WassersteinGenerator, load_critic
from reticent.train.wgan.coding import Levels

FALSE_ALARM = 1e-6
QUICK = {"steps": 20, "noise": "seeded", "noise_multiplier": 0.2, "with_critic": True}
MEMBERS, OTHERS, COLUMNS = 40, 500, 60
# Few people and many columns: each is far from all others, so that a critic can tell every one of them by heart within seconds.
OVERTRAINED = HealthGAN(steps=200, rate=1e-3, with_critic=True)


@pytest.fixture(scope="module")
def critic():
    return WassersteinGenerator(**QUICK).train(builtin_table(), seed=0).critic


def test_a_saved_critic_says_the_same(critic, tmp_path):
    file = critic.save(tmp_path / "critic")
    read = load_critic(file)
    features = builtin_table().features
    np.testing.assert_array_equal(read(features), critic(features))
    assert np.ptp(critic(features)) > 0
    assert read.content() == critic.content()
    assert read.table == ""
    # To pass it on is a decision of its own.
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_critic_says_which_table_it_was_made_with(critic, tmp_path):
    (tmp_path / "made.csv").write_text("a\n1\n")
    read = load_critic(critic.save(tmp_path / "critic", table=tmp_path / "made.csv"))
    assert len(read.table) == 64
    assert read.content() != critic.content()


@pytest.mark.parametrize("recipe", [WassersteinGenerator(**QUICK), HealthGAN(steps=2, coding="levels", with_critic=True)])  # fmt: skip
def test_no_count_of_people_stands_in_the_file(recipe):
    for piece in recipe.train(builtin_table(), seed=0).critic.pieces:
        levels = piece if isinstance(piece, Levels) else piece.missing
        assert not levels.counts.any()


def test_nobody_gets_the_critic_by_default():
    table = builtin_table()
    assert HealthGAN(steps=2).train(table, seed=0).critic is None
    assert HealthGAN(with_critic=True).recipe == "reticent.HealthGAN(with_critic=True)"


def test_what_is_no_critic_is_refused(critic, tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_critic(tmp_path / "absent")
    (tmp_path / "other").write_bytes(pack({"a": 1.0}))
    with pytest.raises(InvalidInput, match="does not hold a critic"):
        load_critic(tmp_path / "other")
    (tmp_path / "text").write_text("weights")
    with pytest.raises(InvalidInput, match="does not hold a critic"):
        load_critic(tmp_path / "text")
    cut = critic.save(tmp_path / "cut")
    cut.write_bytes(cut.read_bytes()[:-9])
    with pytest.raises(InvalidInput, match="does not hold a critic"):
        load_critic(cut)
    with pytest.raises(InvalidInput, match="do not fit together"):
        replace(critic, biases=critic.biases[:-1])
    with pytest.raises(InvalidInput, match="do not fit together"):
        replace(critic, weights=tuple(w * np.nan for w in critic.weights))
    with pytest.raises(OutputRefused, match="cannot be written"):
        critic.save(tmp_path / "nowhere" / "critic")
    features = builtin_table().features
    with pytest.raises(InvalidInput, match="not among those of the records"):
        critic(features.drop(columns=features.columns[0]))


def _people(count, rng):
    values = rng.standard_normal((count, COLUMNS)).round(3)
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(COLUMNS)])


def _auc(critic: ReleasedCritic, members, others):
    ranks = rankdata(np.concatenate([critic(members), critic(others)]))
    wins = ranks[: len(members)].sum() - len(members) * (len(members) + 1) / 2
    return wins / (len(members) * len(others))


def test_an_overtrained_critic_gives_its_people_away_and_one_of_strangers_nobody(seed):
    """Under the null the AUC is that of Mann and Whitney; either bound is crossed by chance once in a million times."""
    rng = stream(seed, "test/critic")
    members, others = _people(MEMBERS, rng), _people(OTHERS, rng)
    strangers = _people(MEMBERS, rng)
    deviation = np.sqrt((MEMBERS + OTHERS + 1) / (12 * MEMBERS * OTHERS))
    of_members, of_strangers = (
        OVERTRAINED.train(table_from_frame(frame, target=None), seed=seed).critic
        for frame in (members, strangers)
    )
    caught = _auc(of_members, members, others)
    assert caught > 0.5 + norm.isf(FALSE_ALARM) * deviation
    blind = _auc(of_strangers, members, others)
    assert abs(blind - 0.5) < norm.isf(FALSE_ALARM / 2) * deviation
