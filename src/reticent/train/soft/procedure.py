"""What soft labels made by private training guarantee: the whole procedure counts, teachers and student.

A record takes part in every teacher that was trained on it, and in the student. The parts of one division are disjoint, so a record is in
the training records of ``folds - 1`` of its teachers (parallel composition for the one that it is left out of), ``repeats`` times over,
and the student learns from all of them (sequential composition). What the teachers say of a record depends on that record and on
releases that were paid for, so the student's targets cost nothing more, as long as they depend on no other record.
"""

from dataclasses import replace

from reticent.account import (
    Composition,
    Guarantee,
    Mechanism,
    Relation,
    Terms,
    trade_off,
)
from reticent.train.private.budget import GLANCE, guarantee_of
from reticent.train.recipes import Private
from reticent.train.soft.recipes import Taught

__all__ = ["guarantee_of_procedure", "mechanism_of_procedure", "teacher_rows"]

# Steps beyond which the privacy loss is put on a coarser grid, whose errors lean to the safe side, so that it takes seconds.
MANY_STEPS = 1_000


def teacher_rows(rows: int, folds: int) -> int:
    """Return the public number of rows of a teacher: all but one part.

    Examples
    --------
    >>> teacher_rows(400, 2), teacher_rows(400, 5)
    (200, 320)
    """
    return rows * (folds - 1) // folds


def mechanism_of_procedure(
    soft: Taught,
    student: Private,
    teacher: Private,
    *,
    rows: int,
    relation: Relation,
) -> Mechanism:
    """Return the mechanism of teachers and student together.

    Parameters
    ----------
    soft : Taught
        Folds, repeats and rounds.
    student, teacher : Private
        The trainings.
    rows : int
        Number of records that a product is trained on.
    relation : Relation
        When tables are neighbours.
    """
    public = teacher.rows or rows
    of_teacher = replace(teacher, rows=teacher_rows(public, soft.folds))
    return Composition(
        parts=(
            (
                of_teacher.mechanism(teacher_rows(rows, soft.folds), relation),
                soft.seen_by,
            ),
            (student.mechanism(rows, relation), 1),
        )
    )


def guarantee_of_procedure(
    soft: Taught,
    student: Private,
    teacher: Private,
    *,
    rows: int,
    terms: Terms,
    largest_unit: int = 1,
) -> Guarantee | None:
    """Return what the whole procedure guarantees; None if targets depend on several records without noise.

    Noise, sampling rate and steps are stated so that DP-SGD with these numbers guarantees no more than the procedure does: the least
    noise and the highest rate of both trainings, and the steps of all trainings that a record takes part in.

    Parameters
    ----------
    soft : Taught
        How targets are made.
    student, teacher : Private
        The trainings.
    rows : int
        Number of records that a product is trained on.
    terms : Terms
        Delta, relation, prior and false-positive rate.
    largest_unit : int
        Largest number of rows that one person has.
    """
    if soft.mixes_records:
        return None
    mechanism = mechanism_of_procedure(
        soft, student, teacher, rows=rows, relation=terms.relation
    )
    of_student = guarantee_of(
        student, rows=rows, terms=terms, largest_unit=largest_unit
    )
    public = teacher_rows(teacher.rows or rows, soft.folds)
    course = replace(teacher, rows=public).course(public)
    steps = soft.seen_by * course.steps + of_student.steps
    curve = trade_off(mechanism, grid=GLANCE if steps > MANY_STEPS else None)
    caveats = [*student.caveats()]
    caveats += [text for text in teacher.caveats() if text not in caveats]
    if largest_unit > 1:
        caveats.append(
            f"the guarantee is about one row, and a person has up to {largest_unit}: such a person is protected less"
        )
    return replace(
        of_student,
        mechanism=f"soft labels by {soft.teachers * soft.passes} teachers, {soft.seen_by} of which train on any one record, and a student; "
        f"the student: {of_student.mechanism}",
        holds=student.noise == "secret" and teacher.noise == "secret",
        epsilon=curve.epsilon(terms.delta),
        noise_multiplier=min(student.noise_multiplier, teacher.noise_multiplier),
        sampling_rate=max(of_student.sampling_rate, course.sampling_rate),
        steps=steps,
        advantage=curve.advantage,
        belief=curve.belief(terms.delta, prior=terms.prior),
        tpr=curve.tpr(terms.fpr),
        caveats=tuple(caveats),
    )
