"""What soft labels made by private training guarantee: the whole procedure counts, teachers and student.

A record takes part in every teacher that was trained on it, and in the student. The parts of one division are disjoint, so a record is in
the training records of ``folds - 1`` of its teachers (parallel composition for the one that it is left out of), ``repeats`` times over,
and the student learns from all of them (sequential composition). What the teachers say of a record depends on that record and on
releases that were paid for, so the student's targets cost nothing more, as long as they depend on no other record.
"""

import math
from dataclasses import replace

from reticent.account import (
    Composition,
    Gaussian,
    Guarantee,
    Mechanism,
    Relation,
    Target,
    Terms,
    TradeOff,
    calibrate,
    trade_off,
)
from reticent.account.plan import rounded_up
from reticent.errors import InvalidInput
from reticent.train.private.budget import (
    DOMAIN_SHARE,
    GLANCE,
    caveat_for_person,
    guarantee_from,
    parts_for_person,
)
from reticent.train.recipes import Private
from reticent.train.soft.recipes import Taught

__all__ = [
    "guarantee_of_procedure",
    "mechanism_of_procedure",
    "teacher_rows",
    "with_noise_for_procedure",
]

# Above this epsilon a coarser grid of the privacy loss changes no digit that is shown, and takes a tenth of the time.
LARGE = 10.0


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
    curve = curve_of(
        mechanism_of_procedure(
            soft, student, teacher, rows=rows, relation=terms.relation
        ),
        terms.delta,
    )
    of_student = guarantee_from(curve, student, rows=rows, terms=terms)
    public = teacher_rows(teacher.rows or rows, soft.folds)
    of_teacher = replace(teacher, rows=public)
    course = of_teacher.course(public)
    caveats = dict.fromkeys([*student.caveats(), *teacher.caveats()])
    if largest_unit > 1:
        one_teacher = parts_for_person(of_teacher, public, terms.relation, largest_unit)
        parts = (
            *((part, times * soft.seen_by) for part, times in one_teacher),
            *parts_for_person(student, rows, terms.relation, largest_unit),
        )
        caveats[caveat_for_person(parts, terms.delta, largest_unit)] = None
    return replace(
        of_student,
        mechanism=f"soft labels by {soft.teachers * soft.passes} teachers, {soft.seen_by} of which train on any one record, and a student; "
        f"the student: {of_student.mechanism}",
        holds=student.noise == "secret" and teacher.noise == "secret",
        noise_multiplier=min(student.noise_multiplier, teacher.noise_multiplier),
        sampling_rate=max(of_student.sampling_rate, course.sampling_rate),
        steps=soft.seen_by * course.steps + of_student.steps,
        caveats=tuple(caveats),
    )


def with_noise_for_procedure(
    soft: Taught, target: Target, *, rows: int, delta: float, relation: Relation
) -> Taught:
    """Return soft labels whose student and teachers have the least equal noise with which the whole procedure meets a target.

    Parameters
    ----------
    soft : Taught
        The recipe, of private networks or modules, whose noise is replaced.
    target : Target
        What must hold.
    rows : int
        The public number of records.
    delta : float
        The delta of the target; a hundredth of it is reserved for what learned domains may betray.
    relation : Relation
        When tables are neighbours.

    Raises
    ------
    InvalidInput
        If a training adds no noise, or targets depend on several records without noise.
    """
    student = soft.trainer
    teacher = student if soft.teacher is None else soft.teacher
    if not isinstance(student, Private) or not isinstance(teacher, Private):
        raise InvalidInput(
            "soft labels keep a risk only if student and teachers add noise, but one of them does not; use reticent.PrivateNetwork(...) "
            "for both, or train without a risk: nothing is then guaranteed."
        )
    if soft.mixes_records:
        raise InvalidInput(
            "the targets depend on all records without noise, by validation, by the median shift or by the repair, so that no noise in the "
            "training keeps a risk; give alpha a number, or reticent.PerRecord a reference."
        )
    parts = soft.seen_by + 1

    def ready(recipe: Private) -> Private:
        recipe = replace(recipe, rows=rows)
        if recipe.domain is not None:
            return recipe
        whole = calibrate(
            target, lambda z: Gaussian(noise_multiplier=z, relation=relation)
        )
        # Squares of inverse noises add up over all trainings that a record takes part in.
        noise = rounded_up(whole / DOMAIN_SHARE * math.sqrt(parts))
        failure = float(f"{delta / 100 / parts:.3g}")
        return replace(recipe, domain_noise=noise, domain_failure=failure)

    student, teacher = ready(student), ready(teacher)

    def mechanism(noise: float) -> Mechanism:
        return mechanism_of_procedure(
            soft,
            replace(student, noise_multiplier=noise),
            replace(teacher, noise_multiplier=noise),
            rows=rows,
            relation=relation,
        )

    noise = rounded_up(calibrate(target, mechanism))
    student = replace(student, noise_multiplier=noise)
    teacher = replace(teacher, noise_multiplier=noise)
    return replace(
        soft, trainer=student, teacher=None if soft.teacher is None else teacher
    )


def curve_of(mechanism: Mechanism, delta: float) -> TradeOff:
    """Return what a mechanism guarantees, on a grid that is fine enough for its epsilon; errors lean to the safe side."""
    rough = trade_off(mechanism, grid=GLANCE)
    if rough.epsilon(delta) > LARGE:
        return rough
    return trade_off(mechanism)
