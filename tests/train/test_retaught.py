"""Label smoothing and distillation: what is taught, and that neither hides who was trained on."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

import reticent
from reticent.data import builtin_table
from reticent.errors import InvalidInput, InvalidSpec
from reticent.product import answers_of
from reticent.testing import check_trainer
from reticent.train import parse_trainer, trainer_of

NETWORK = "reticent.Network(hidden=[8], epochs=20, batch=16, optimiser=reticent.Adam(rate=0.01))"


@pytest.mark.parametrize(
    "recipe",
    [
        f"reticent.LabelSmoothing({NETWORK}, share=0.2)",
        f"reticent.Distillation({NETWORK}, temperature=3.0)",
        "reticent.LabelSmoothing(sklearn.tree.DecisionTreeClassifier(max_depth=3), share=0.2)",
    ],
)
def test_they_keep_the_contract_and_can_be_written_down(recipe):
    table = builtin_table().take(np.arange(120))
    trainer = parse_trainer(recipe)
    check_trainer(trainer, table)
    assert parse_trainer(trainer.recipe).recipe == trainer.recipe


def test_smoothed_labels_are_learned_exactly():
    """A logistic regression on smoothed labels minimises the soft cross-entropy: its gradient vanishes there, and not on hard labels."""
    table = builtin_table()
    share = 0.4
    model = reticent.LabelSmoothing(
        LogisticRegression(C=1e6, tol=1e-10, max_iter=10_000), share=share
    )
    product = trainer_of(model, preprocess=False).train(table, seed=0)
    X = table.features.to_numpy()
    answers = answers_of(product, table.features)
    target = (1 - share) * np.eye(2)[table.target] + share / 2
    soft = np.abs(X.T @ (answers - target)).max()
    hard = np.abs(X.T @ (answers - np.eye(2)[table.target])).max()
    assert soft < 0.01 * hard


def test_a_teacher_at_a_temperature_is_the_softmax_of_divided_logits():
    logits = np.array([[[2.0, 0.0, -1.0]]])
    taught = softmax(logits, axis=2)
    recipe = reticent.Distillation(NETWORK, temperature=2.0)
    targets = recipe.targets(np.zeros((1, 3)), taught)
    assert np.allclose(np.log(targets), log_softmax(logits / 2, axis=2))


def test_the_pool_is_what_single_trainings_are():
    table = builtin_table().take(np.arange(100))
    masks = np.zeros((2, 100), dtype=bool)
    masks[0, :60], masks[1, 40:] = True, True
    trainer = parse_trainer(f"reticent.Distillation({NETWORK})")
    many = trainer.train_many(table, masks, np.array([3, 4]), memory=1.0)
    for k in range(2):
        one = trainer.train(table.take(np.flatnonzero(masks[k])), seed=3 + k)
        assert np.allclose(answers_of(one, table.features), many[k], atol=1e-5)


def test_a_guarantee_remains_with_smoothing_and_not_with_distillation():
    private = (
        "reticent.PrivateNetwork(hidden=[4], epochs=2, batch=32, noise_multiplier=2.0)"
    )
    inner = parse_trainer(private).guarantee(200)
    smoothed = parse_trainer(f"reticent.LabelSmoothing({private})").guarantee(200)
    assert smoothed.epsilon == inner.epsilon
    assert parse_trainer(f"reticent.Distillation({private})").guarantee(200) is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: reticent.LabelSmoothing(NETWORK, share=1.0), "share must lie"),
        (lambda: reticent.Distillation(NETWORK, temperature=0.0), "temperature must be"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


def test_hard_labels_and_quantities_are_refused_with_a_sentence():
    with pytest.raises(InvalidSpec, match="hard labels only"):
        parse_trainer(
            "reticent.LabelSmoothing(sklearn.neighbors.KNeighborsClassifier())"
        )
    with pytest.raises(InvalidSpec, match="about classes"):
        parse_trainer("reticent.Distillation(sklearn.linear_model.Ridge())")
