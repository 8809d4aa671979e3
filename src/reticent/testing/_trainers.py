"""The contract of trainers: learn, repeat, leave the table alone, be capable of what is stated."""

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee, Relation
from reticent.data import ColumnKind, Table
from reticent.pool import balanced_masks
from reticent.product import Trainer, answers_of, as_product
from reticent.run import Content, stream

__all__ = ["check_trainer"]

# By how much the answers of one model may differ if it is trained alone, in a pool, or on a prepared table:
# in single precision, sums in another order differ by 1e-7, and many steps of training amplify that. It is a
# probability, or a share of the quantity's standard deviation.
PRECISION = 1e-4
MEMORY = 1.0  # gigabytes for a pool of two models, which changes no result
LEAST_EXPLAINED = (
    1e-6  # of the variance: a constant prediction explains 0, up to rounding
)


def check_trainer(
    trainer: Trainer,
    table: Table,
    *,
    seed: int = 42,
    others: Sequence[Trainer] = (),
) -> None:
    """Assert that a trainer learns, repeats itself, leaves its table alone, and is capable of what it states.

    Its products must answer with probabilities, or with one number per record if they predict a quantity, and
    be better on their own records than a constant. The models that ``train_many`` trains together must be those
    that it trains one by one and, if the trainer is repeatable, those that ``train`` gives. ``prepared`` must not
    change them, ``content`` must tell trainers apart, and a guarantee must be possible.

    Parameters
    ----------
    trainer : Trainer
        The trainer to check.
    table : Table
        Records it can learn from.
    seed : int
        Training seed.
    others : sequence of Trainer
        Trainers that differ from it in one parameter each, so their content must differ.

    Raises
    ------
    AssertionError
        If the trainer breaks the contract.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from reticent.data import builtin_table
    >>> from reticent.train import trainer_of
    >>> check_trainer(
    ...     trainer_of(DecisionTreeClassifier(max_depth=3)),
    ...     builtin_table(),
    ...     others=[trainer_of(DecisionTreeClassifier(max_depth=4))],
    ... )
    """
    assert isinstance(trainer, Trainer), (
        f"a {type(trainer).__name__} lacks capabilities of a trainer; derive it from reticent.train.PlainTrainer"
    )
    assert trainer.recipe, "a trainer says how it can be made again"
    assert trainer.chunk >= 1, f"a chunk holds at least one model, not {trainer.chunk}"
    assert trainer.quantity == table.is_quantity, (
        f"the trainer says that it predicts a {_kind(trainer.quantity)}, but the target is a {_kind(table.is_quantity)}"
    )
    features, target = table.features.copy(deep=True), table.target.copy()
    content = trainer.content()
    product = as_product(trainer.train(table, seed=seed))
    unchanged = features.equals(table.features) and (target == table.target).all()
    assert unchanged, "a trainer must not change its table"
    assert product.quantity == table.is_quantity, (
        f"the product predicts a {_kind(product.quantity)}, but the target is a {_kind(table.is_quantity)}"
    )
    answers = answers_of(product, table.features)
    _check_answers(answers, table)
    if trainer.repeatable:
        second = as_product(trainer.train(table, seed=seed))
        assert np.allclose(answers, answers_of(second, table.features)), (
            "the same table and seed must give the same product, or the trainer must say that it is not repeatable"
        )
    _check_content(trainer, content, others)
    _check_pool(trainer, table, seed)
    for rows in (len(table), 10 * len(table)):
        _check_guarantee(trainer.guarantee(rows), rows, repeatable=trainer.repeatable)


def _kind(quantity: bool) -> str:
    return "quantity" if quantity else "class"


def _check_answers(answers: NDArray[np.floating], table: Table) -> None:
    """Assert that a product answers as it should, and has learned from the records it was trained on."""
    assert np.isfinite(answers).all(), "answers are finite"
    if table.is_quantity:
        assert answers.shape == (len(table), 1), "one prediction per record"
        error = float(np.mean((table.target - answers[:, 0]) ** 2))
        explained = 1 - error / float(np.var(table.target))
        assert explained > LEAST_EXPLAINED, (
            f"a trainer must learn something from its own records, but R² is {explained:.3g}"
        )
        return
    assert answers.shape == (len(table), len(table.classes)), "one column per class"
    assert ((answers >= 0) & (answers <= 1)).all(), "probabilities are from 0 to 1"
    accuracy = float(np.mean(answers.argmax(axis=1) == table.target))
    majority = float(np.bincount(table.target).max() / len(table))
    assert accuracy > majority, (
        f"a trainer must learn something from its own records, but its accuracy of {accuracy:.3g} is not above the majority's {majority:.3g}"
    )


def _check_content(
    trainer: Trainer, before: Content, others: Sequence[Trainer]
) -> None:
    """Assert that equal trainers have equal content, and trainers with another parameter another one."""
    assert trainer.content() == before, (
        "the content of a trainer must not change when it trains"
    )
    assert copy.deepcopy(trainer).content() == before, (
        "equal trainers must have equal content, or nothing they train is found again"
    )
    for other in others:
        assert other.content() != before, (
            f"{other.recipe} differs in a parameter, so its content must differ, or its products are taken for those of {trainer.recipe}"
        )


def _check_pool(trainer: Trainer, table: Table, seed: int) -> None:
    """Assert that two models trained together are those trained one by one, prepared or not."""
    masks = np.stack([_part(table, seed), np.ones(len(table), dtype=bool)])
    seeds = np.array([seed + 1, seed])
    pooled = trainer.train_many(table, masks, seeds, memory=MEMORY)
    expected = (2, len(table), len(table.classes) or 1)
    assert pooled.shape == expected, (
        f"train_many gives answers of shape {expected}, not {pooled.shape}"
    )
    unit = float(table.target.std()) if table.is_quantity else 1.0
    for k, mask in enumerate(masks):
        one = slice(k, k + 1)
        alone = trainer.train_many(table, masks[one], seeds[one], memory=MEMORY)[0]
        assert _apart(pooled[k], alone) <= PRECISION * unit, (
            "a model of a pool must depend on its mask and its seed alone, not on the other models nor on secret noise"
        )
        if trainer.repeatable:
            part = table.take(np.flatnonzero(mask))
            product = as_product(trainer.train(part, seed=int(seeds[k])))
            single = answers_of(product, table.features)
            assert _apart(pooled[k], single) <= PRECISION * unit, (
                "train_many must give the models that single trainings on the masked records give"
            )
    prepared = trainer.prepared(table)
    again = trainer.train_many(prepared, masks, seeds, memory=MEMORY)
    assert pooled.shape == again.shape, "a prepared table has the same records"
    assert _apart(pooled, again) <= PRECISION * unit, (
        "preparing a table must not change the models that are trained on it"
    )


def _part(table: Table, seed: int) -> NDArray[np.bool_]:
    """Return a mask of about half of the units, with every class and every category among its records.

    Models that never saw a category would have fewer inputs if they were trained alone.
    """
    rng = stream(seed, "check_trainer/mask")
    mask = balanced_masks(2, table.units, rng=rng)[0].copy()
    for name in table.schema.names(ColumnKind.CATEGORICAL):
        mask[~table.features[name].duplicated()] = True
    if not table.is_quantity:
        mask[np.unique(table.target, return_index=True)[1]] = True
    return np.asarray(mask)


def _apart(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    return float(np.abs(first.astype(np.float64) - second).max())


def _check_guarantee(
    guarantee: Guarantee | None, rows: int, *, repeatable: bool
) -> None:
    """Assert that a guarantee, if there is any, can hold and is stated as all others are."""
    if guarantee is None:
        return
    assert np.isclose(guarantee.delta, 1 / (10 * rows)), (
        f"a guarantee for {rows} rows is stated at delta {1 / (10 * rows):.3g}, not {guarantee.delta:.3g}"
    )
    assert guarantee.relation == Relation.ADD_REMOVE.value, (
        f"a guarantee is stated under add/remove, not {guarantee.relation}"
    )
    if guarantee.holds:
        assert guarantee.epsilon >= 0, f"epsilon is {guarantee.epsilon}, below 0"
        assert not repeatable, (
            "a guarantee cannot hold if the seed gives the same product again: whoever knows the seed knows the noise"
        )
