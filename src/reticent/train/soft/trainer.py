"""Train on soft labels: teachers for all models in few passes, targets from their answers, then the students."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee, Relation, Target, Terms
from reticent.data import Table
from reticent.errors import InvalidSpec
from reticent.product import Procedure, Trainer, answers_of, as_product
from reticent.run import Content, content_of, seed_for, stream
from reticent.train._plain import PlainTrainer, must_fit
from reticent.train.memory import fitting_size
from reticent.train.private.noise import secure_generator
from reticent.train.soft.folds import folds_of, teaching_masks
from reticent.train.soft.procedure import (
    guarantee_of_procedure,
    teacher_rows,
    with_noise_for_procedure,
)
from reticent.train.soft.recipes import RepairedLabels, Taught
from reticent.train.soft.targets import LeaveOut, leave_out

__all__ = ["SoftLabelTrainer"]

MEMORY = 2.0  # gigabytes for the teachers of a single product, as for a pool
# Defended models in one pass if the product's noise is secret: its teachers were trained one by one, those of a pool are not.
MODELS_IF_SECRET = 2
Answers = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class SoftLabelTrainer(PlainTrainer):
    """Train students on what leave-out teachers say of each record.

    ``train_many`` runs the whole procedure for each model, the choice of alpha included: that is what an attacker who knows the
    recipe does. Teachers of all models are trained in as few calls of the teachers' trainer as the memory allows.

    Parameters
    ----------
    soft : SoftLabels or RepairedLabels
        How targets are made.
    inner, teacher : Trainer
        What trains students and teachers.
    recipe : str
        Description from which the trainer can be built again.
    """

    soft: Taught
    inner: Trainer
    teacher: Trainer
    recipe: str

    def __post_init__(self) -> None:
        self.inner.student()  # so that one that takes hard labels only is refused before the audit begins
        if self.soft.passes > 1:
            self.teacher.student()
        if self.inner.quantity != self.teacher.quantity:
            raise InvalidSpec(
                f"the student {self.inner.recipe} and the teacher {self.teacher.recipe} do not both predict a class or both a quantity; "
                "let them predict the same."
            )
        if isinstance(self.soft, RepairedLabels) and self.inner.quantity:
            raise InvalidSpec(
                f"the trainer {self.inner.recipe} predicts a quantity, but only labels of classes can be repaired; use "
                "reticent.SoftLabels for a quantity."
            )

    @property
    def quantity(self) -> bool:
        """Whether products predict a quantity."""
        return self.inner.quantity

    @property
    def chunk(self) -> int:
        """Number of defended models in one pass: one, because the teachers of one model fill a pass."""
        return 1 if self.repeatable else MODELS_IF_SECRET

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again."""
        return self.inner.repeatable and self.teacher.repeatable

    @property
    def prepares(self) -> bool:
        """Whether the student prepares the columns by what enough people have."""
        return self.inner.prepares

    def content(self) -> Content:
        """Return how targets are made, and what students and teachers depend on."""
        settings = {
            name: value
            for name, value in vars(self.soft).items()
            if name not in ("trainer", "teacher")
        }
        how = content_of(type(self.soft).__name__, repr(sorted(settings.items())))
        return how + self.inner.content() + self.teacher.content()

    def prepared(self, table: Table) -> Table:
        """Return the table as the trainer inside prepares it; unchanged if teachers are trained otherwise."""
        return self.inner.prepared(table) if self.soft.teacher is None else table

    def must_be_storable(self, table: Table) -> None:
        """Refuse a student that could not be saved."""
        self.inner.must_be_storable(table)

    def guarantee(self, rows: int) -> Guarantee | None:
        """Return what the whole procedure guarantees, teachers included, at delta 1 / (10 rows) under add/remove; None without noise."""
        return self.guarantee_on(rows, Terms(delta=1 / (10 * rows)))

    def procedure(self) -> Procedure | None:
        """Return the trainer itself: teachers and student are paid for together."""
        return self

    @property
    def stated_rows(self) -> tuple[int, ...]:
        """The numbers of rows that student and teachers were planned for, where they state one."""
        private = [part.watching() for part in (self.inner, self.teacher)]
        rows = [one.private.rows for one in private if one is not None]
        return tuple(number for number in rows if number is not None)

    def keeping(
        self, target: Target, *, rows: int, delta: float, relation: Relation
    ) -> Taught:
        """Return soft labels with the least noise with which the whole procedure meets a target."""
        return with_noise_for_procedure(
            self.soft, target, rows=rows, delta=delta, relation=relation
        )

    def guarantee_on(
        self, rows: int, terms: Terms, *, largest_unit: int = 1
    ) -> Guarantee | None:
        """Return what the whole procedure guarantees in the given terms.

        Parameters
        ----------
        rows : int
            Number of records that a product is trained on.
        terms : Terms
            Delta, relation, prior and false-positive rate.
        largest_unit : int
            Largest number of rows that one person has.
        """
        student, teacher = self.inner.watching(), self.teacher.watching()
        if student is None or teacher is None:
            return None
        return guarantee_of_procedure(
            self.soft,
            student.private,
            teacher.private,
            rows=rows,
            terms=terms,
            largest_unit=largest_unit,
        )

    def train(self, table: Table, *, seed: int) -> Any:
        """Return a student trained on all records of a table, and on what teachers that did not see them say of them.

        If the noise of students or teachers is secret, so are the parts of the table that teachers are trained on.
        """
        everyone, seeds = np.ones((1, len(table)), dtype=bool), np.array([seed])
        targets = self._targets(
            table, everyone, seeds, memory=MEMORY, secret=not self.repeatable
        )
        return self.inner.student().train_on(table, targets[0], seed=seed)

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> Answers:
        """Return the answers of one defended model per mask on all records, shape (M, n, c)."""
        must_fit(table, masks, seeds)
        width = len(table.classes) or 1
        # Answers of the teachers, what they were trained on, and their logits in double precision.
        each = self.soft.teachers * len(table) * (12 * width + 1)
        size = fitting_size(len(masks), each=each, memory=memory)
        student = self.inner.student()
        return np.concatenate(
            [
                student.train_many_on(
                    table,
                    masks[at : at + size],
                    self._targets(
                        table, masks[at : at + size], seeds[at : at + size], memory
                    ),
                    seeds[at : at + size],
                    memory=memory,
                )
                for at in range(0, len(masks), size)
            ]
        )

    def _targets(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        memory: float,
        secret: bool = False,
    ) -> NDArray[np.float64]:
        """Return what each student learns, (M, n, c); nothing for records that it is not trained on."""
        group = _Group(table=table, masks=masks, seeds=seeds, secret=secret)
        alphas = [self._alpha(group, k, memory) for k in range(len(masks))]
        targets = None
        for number in range(self.soft.passes):
            said = self._said(group, number, targets, memory)
            targets = group.spread(
                [
                    self.soft.targets(answers, alpha)
                    for answers, alpha in zip(said, alphas, strict=True)
                ]
            )
        assert targets is not None
        return targets

    def _said(
        self,
        group: "_Group",
        number: int,
        targets: NDArray[np.float64] | None,
        memory: float,
    ) -> list[LeaveOut]:
        """Return what leave-out teachers say of each model's members, in one round."""
        soft, private = self.soft, self.teacher.watching() is not None
        teaching, seeds = group.teaching(soft, number, stratified=not private)
        answers: Answers | None = None
        # A private teacher states its number of rows, so models of different sizes need different teachers; others are all alike.
        sizes = group.sizes if private else np.zeros(len(group), dtype=np.int64)
        for size in np.unique(sizes):
            models = np.flatnonzero(sizes == size)
            teacher = self._teacher(int(size)) if private else self.teacher
            lesson = None
            if targets is not None:
                lesson = np.repeat(targets[models], soft.teachers, axis=0)
            part = _ask(
                teacher,
                group,
                teaching[models].reshape(-1, len(group.table)),
                seeds[models].reshape(-1),
                lesson,
                memory,
            )
            part = part.reshape(len(models), soft.teachers, *part.shape[1:])
            if answers is None:
                answers = np.empty((len(group), *part.shape[1:]), dtype=part.dtype)
            answers[models] = part
        assert answers is not None
        return [
            leave_out(
                answers[k][:, rows],
                teaching[k][:, rows],
                group.table.target[rows],
                floor=soft.floor,
            )
            for k, rows in enumerate(group.members)
        ]

    def _teacher(self, rows: int) -> Trainer:
        """Return the private trainer of teachers for a model with a number of rows."""
        watchable = self.teacher.watching()
        assert watchable is not None
        stated = watchable.private.rows or rows
        trainer: Trainer = watchable.for_rows(teacher_rows(stated, self.soft.folds))
        return trainer

    def _alpha(self, group: "_Group", model: int, memory: float) -> float | None:
        """Return the alpha that cross-validation chooses for one model; None if the recipe states it."""
        rule = self.soft.validation
        if rule is None:
            return None
        table, seed = group.table, int(group.seeds[model])
        rows = group.members[model]
        parts = folds_of(
            table.take(rows),
            rule.folds,
            rng=stream(seed, "soft_labels/validation"),
            stratified=True,
        )
        masks = np.zeros((rule.folds, len(table)), dtype=bool)
        masks[:, rows] = parts[None] != np.arange(rule.folds)[:, None]
        seeds = np.array(
            [seed_for(seed, f"soft_labels/validation/{k}") for k in range(rule.folds)]
        )
        without = _Group(table=table, masks=masks, seeds=seeds, secret=False)
        said = self._said(without, 0, None, memory)
        student = self.inner.student()
        errors = []
        for alpha in sorted(rule.alphas):
            targets = without.spread([self.soft.targets(a, alpha) for a in said])
            answers = student.train_many_on(table, masks, targets, seeds, memory=memory)
            judged = [
                _errors(answers[k], table)[rows[parts == k]] for k in range(rule.folds)
            ]
            errors.append(float(np.concatenate(judged).mean()))
        # The first of equal ones, which is the smallest alpha.
        return sorted(rule.alphas)[int(np.argmin(errors))]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Defended models whose teachers are trained together.

    Parameters
    ----------
    table : Table
        All n records.
    masks : array of bool, shape (M, n)
        Members of each model.
    seeds : array of int, shape (M,)
        Seed of each model.
    secret : bool
        Whether what is drawn must come from system entropy, because a product with a guarantee is trained.
    """

    table: Table
    masks: NDArray[np.bool_]
    seeds: NDArray[np.int64]
    secret: bool

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def members(self) -> list[NDArray[np.int64]]:
        """Rows of each model's members."""
        return [np.flatnonzero(mask) for mask in self.masks]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each model."""
        return np.asarray(self.masks.sum(axis=1))

    def teaching(
        self, soft: Taught, number: int, *, stratified: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return who teaches in one round: masks (M, T, n) and seeds (M, T).

        They depend on the model's members, in their order, and on its seed, so that a model of a pool has the teachers that it has alone.
        """
        masks = np.zeros((len(self), soft.teachers, len(self.table)), dtype=bool)
        seeds = np.empty((len(self), soft.teachers), dtype=np.int64)
        for k, rows in enumerate(self.members):
            seed = int(self.seeds[k])
            rng = stream(seed, f"soft_labels/folds/{number}")
            masks[k][:, rows] = teaching_masks(
                self.table.take(rows),
                soft.folds,
                soft.repeats,
                rng=secure_generator() if self.secret else rng,
                stratified=stratified,
            )
            drawn = stream(seed, f"soft_labels/teachers/{number}")
            seeds[k] = drawn.integers(2**31 - 1, size=soft.teachers)
        return masks, seeds

    def spread(self, targets: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the targets of each model's members at their rows, (M, n, c), and zeros elsewhere."""
        shape = (len(self), len(self.table), targets[0].shape[1])
        spread = np.zeros(shape)
        for k, rows in enumerate(self.members):
            spread[k, rows] = targets[k]
        return spread


def _ask(
    teacher: Trainer,
    group: _Group,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    targets: NDArray[np.float64] | None,
    memory: float,
) -> Answers:
    """Return what teachers answer for all records, (T, n, c): trained together, or one by one if their noise is secret.

    The noise of a pool comes from seeds. Teachers of a product are part of it: without secret noise in them nothing is guaranteed.
    """
    table = group.table
    if not group.secret:
        if targets is None:
            return teacher.train_many(table, masks, seeds, memory=memory)
        student = teacher.student()
        return student.train_many_on(table, masks, targets, seeds, memory=memory)
    answers = []
    for k, (mask, seed) in enumerate(zip(masks, seeds, strict=True)):
        rows = np.flatnonzero(mask)
        part = table.take(rows)
        if targets is None:
            product = teacher.train(part, seed=int(seed))
        else:
            student = teacher.student()
            product = student.train_on(part, targets[k][rows], seed=int(seed))
        answers.append(answers_of(as_product(product), table.features))
    return np.stack(answers)


def _errors(answers: Answers, table: Table) -> NDArray[np.float64]:
    """Return the error of each answer: whether the class is wrong, or the squared error of a quantity."""
    if table.is_quantity:
        return np.asarray((answers[:, 0] - table.target) ** 2, dtype=np.float64)
    return np.asarray(answers.argmax(axis=1) != table.target, dtype=np.float64)
