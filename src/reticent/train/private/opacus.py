r"""Models trained with Opacus: what is claimed about them, which part of the claim holds, and the model as a product.

Opacus records a history of its steps: noise divided by the clipping bound, probability of a record to take part, number of steps. That is
a mechanism, and its privacy loss distribution gives the epsilon that holds for it. What the history leaves out is read from the
engine, the optimiser and the loader, and stated as caveats:

- Noisy sums are divided by the number of records over the number of batches, rounded down. With one record more or less that may be
  another number, and then the scale of the noise alone tells the two tables apart (issues 571 and 819 of Opacus): what holds is
  a guarantee for replacing a record.
- Without secure mode, noise comes from PyTorch's generator, which on a CPU uses 32 bits of its seed: all :math:`2^{32}` streams of noise
  can be tried.
- Batches cut from a shuffled table are accounted as if they were Poisson samples. They protect less [1]_.
- The accountant ``gdp`` is a limit for many steps, and below the truth for few [2]_.

References
----------
.. [1] Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang, "How private are DP-SGD implementations?", arXiv:2403.17673.
.. [2] Gopi, Lee & Wutschitz, "Numerical composition of differential privacy", arXiv:2106.02848.
.. [3] Yousefpour et al., "Opacus: user-friendly differential privacy library in PyTorch", arXiv:2109.12298.
.. [4] Andrew, Thakkar, McMahan & Ramaswamy, "Differentially private learning with adaptive clipping", arXiv:1905.03871.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import in_open_unit
from reticent.account import (
    Composition,
    Guarantee,
    PrivateTraining,
    Relation,
    trade_off,
)
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Encoder, ModuleProduct

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "OpacusClaim",
    "claim_of_opacus",
    "mechanism_of_steps",
    "product_of_module",
]

DEFAULT_SEED = 67280421310721  # seed of every torch.Generator() that is given none
BOTH = (Relation.ADD_REMOVE, Relation.REPLACE)
History = tuple[tuple[float, float, int], ...]


@dataclass(frozen=True, kw_only=True)
class OpacusClaim:
    """What Opacus claims about a training, and what speaks against the claim.

    Parameters
    ----------
    epsilon, delta : float
        The claim of its accountant, for adding or removing a record.
    accountant : str
        ``rdp``, ``prv`` or ``gdp``.
    history : tuple of (noise multiplier, sampling rate, steps)
        What the accountant recorded about the training.
    mechanism : Composition
        The mechanism of the steps; ``trade_off(mechanism)`` holds for them where the guarantee is not void.
    rows : int
        Number of records of the training.
    caveats : tuple of str
        What the reader must know.
    void : tuple of Relation
        Relations under which there is no guarantee; the caveats say why.
    """

    epsilon: float
    delta: float
    accountant: str
    history: History
    mechanism: Composition
    rows: int
    caveats: tuple[str, ...] = ()
    void: tuple[Relation, ...] = ()

    def proven_epsilon(self, relation: Relation = Relation.ADD_REMOVE) -> float:
        """Return epsilon at the claim's delta from the privacy loss distribution of the steps, rounded up."""
        return trade_off(self._under(relation)).epsilon(self.delta)

    def guarantee(
        self,
        relation: Relation = Relation.ADD_REMOVE,
        *,
        prior: float = 0.5,
        fpr: float = 0.001,
    ) -> Guarantee:
        """Return the guarantee that is saved with the product; its numbers are those of the steps, not those claimed.

        Parameters
        ----------
        relation : Relation
            When tables are neighbours.
        prior, fpr : float
            Belief before the release, and false-positive rate at which the true-positive rate is stated.
        """
        curve = trade_off(self._under(relation))
        return Guarantee(
            mechanism=self._words(),
            holds=relation not in self.void,
            relation=relation.value,
            epsilon=curve.epsilon(self.delta),
            delta=self.delta,
            noise_multiplier=min(noise for noise, _, _ in self.history),
            sampling_rate=max(rate for _, rate, _ in self.history),
            steps=sum(steps for _, _, steps in self.history),
            advantage=curve.advantage,
            belief=curve.belief(self.delta, prior=prior),
            prior=prior,
            tpr=curve.tpr(fpr),
            fpr=fpr,
            caveats=self.caveats,
            public=(
                f"the number of rows ({self.rows:,})",
                "names, kinds and categories of the columns, and their centre and scale: if these were computed from the records, "
                "nothing protects what they reveal",
                "names of the classes",
                "the settings of the training, as long as they were not chosen by looking at these records",
            ),
        )

    def _under(self, relation: Relation) -> Composition:
        parts = []
        for part, times in self.mechanism.parts:
            assert isinstance(part, PrivateTraining)
            parts.append((replace(part, relation=relation), times))
        return Composition(parts=tuple(parts))

    def _words(self) -> str:
        noise = sorted({noise for noise, _, _ in self.history})
        spread = f"{noise[0]:g}" + (f" to {noise[-1]:g}" if len(noise) > 1 else "")
        steps = sum(steps for _, _, steps in self.history)
        return (
            f"DP-SGD by Opacus: {steps:,} steps, normal noise of {spread} times the bound on a record's gradient; its accountant "
            f"{self.accountant} claims epsilon {self.epsilon:.3g}"
        )


def claim_of_opacus(
    engine: Any,
    *,
    delta: float,
    optimiser: Any,
    loader: Any,
    rows: int | None = None,
    batch: int | None = None,
) -> OpacusClaim:
    """Return what Opacus claims about a finished training, and what speaks against the claim.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        The engine that has counted the steps.
    delta : float
        Delta at which epsilon is claimed.
    optimiser, loader
        The optimiser and loader that ``make_private`` returned.
    rows : int, optional
        Number of records of the training; by default that of the loader's data set.
    batch : int, optional
        Batch size of the loader that was given to ``make_private``. Without it, every size that gives as many batches is considered.

    Raises
    ------
    InvalidInput
        If no step was taken, a step had no noise, or the number of rows or the batch does not match the loader.
    """
    in_open_unit(delta, "delta")
    records = len(loader.dataset)
    if rows is not None and rows != records:
        raise InvalidInput(
            f"the loader has {records} records, but rows is {rows}, so the steps would be accounted for another table; pass the "
            "loader that make_private returned."
        )
    history = _history(engine.accountant.history)
    accountant = str(engine.accountant.mechanism())
    caveats: list[str] = []
    void: set[Relation] = set()
    if not engine.secure_mode:
        void.update(BOTH)
        caveats.append(
            "the noise came from PyTorch's generator, not from secure mode: it follows from a seed, of which a CPU uses 32 bits, and "
            "whoever tries them all can subtract it"
        )
        generator = getattr(optimiser, "generator", None)
        if generator is not None and generator.initial_seed() == DEFAULT_SEED:
            caveats.append(
                "that generator was created without a seed, so it has PyTorch's default seed, and everybody can compute the noise"
            )
    sampler = _poisson_sampler(loader)
    if sampler is None:
        void.add(Relation.ADD_REMOVE)
        caveats.append(
            "batches were cut from a shuffled table, and the claim accounts for them as Poisson samples, which protect more: the steps are "
            "stated here without the protection that sampling would add"
        )
    elif max(rate for _, rate, _ in history) < sampler.sample_rate * (1 - 1e-9):
        void.update(BOTH)
        caveats.append(
            f"records were drawn with probability {sampler.sample_rate:.4g}, more than the {max(rate for _, rate, _ in history):.4g} that is "
            "accounted for"
        )
    varies = _what_varies(
        records,
        steps=len(loader),
        drawn=len(loader) if sampler is None else round(1 / sampler.sample_rate),
        batch=batch,
        optimiser=optimiser,
    )
    if varies:
        void.add(Relation.ADD_REMOVE)
        caveats.append(
            f"{varies}: that alone tells a table with a record from one without it, so the guarantee only holds for replacing a "
            "record"
        )
    if type(optimiser).__name__ == "AdaClipDPOptimizer":
        void.update(BOTH)
        caveats.append(
            "the clipping bound followed a noisy count divided by the exact size of each batch, which has no noise and is not accounted for"
        )
    if accountant == "gdp":
        caveats.append(
            "the accountant gdp is an approximation for many steps and not a bound: the epsilon that it claims can be too small"
        )
    return OpacusClaim(
        epsilon=float(engine.accountant.get_epsilon(delta)),
        delta=delta,
        accountant=accountant,
        history=history,
        mechanism=mechanism_of_steps(history, shuffled=sampler is None),
        rows=records,
        caveats=tuple(caveats),
        void=tuple(relation for relation in BOTH if relation in void),
    )


def product_of_module(
    module: "nn.Module",
    table: Table,
    *,
    centre: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    warnings: Sequence[str] = (),
) -> ModuleProduct:
    """Return a copy of a module that was trained elsewhere, as a product that can be saved.

    Parameters
    ----------
    module : nn.Module
        Maps (n, inputs) to (n, classes) logits; the wrapper of Opacus is removed.
    table : Table
        A table with the columns of the training, which ``Encoder.of(table)`` turns into the module's inputs, and with its classes in the
        order of the logits.
    centre, scale : array of float, shape (inputs,), optional
        The centre and scale, if the module was trained on ``(numbers - centre) / scale``; by default 0 and 1.
    warnings : sequence of str
        What users should know about the training.

    Raises
    ------
    InvalidInput
        If centre or scale do not fit the columns.
    OutputRefused
        If the module does something that cannot be written down without code.
    """
    encoder = Encoder.of(table)
    while hasattr(module, "_module") and hasattr(module, "remove_hooks"):
        module = module._module  # type: ignore[assignment]
    scaling = []
    for name, values, default in (("centre", centre, 0.0), ("scale", scale, 1.0)):
        given = np.asarray(default if values is None else values, dtype=np.float32)
        if given.shape not in ((), (encoder.width,)):
            raise InvalidInput(
                f"{name} has the shape {given.shape}, but the module sees {encoder.width} columns; pass one number for each."
            )
        scaling.append(np.full(encoder.width, given, dtype=np.float32))
    return ModuleProduct(
        encoder=encoder,
        module=module,
        centre=scaling[0],
        scale=scaling[1],
        classes=table.classes,
        warnings=tuple(warnings),
    ).copied()


def _history(entries: Sequence[Sequence[float]]) -> History:
    history = tuple(
        (float(noise), min(float(rate), 1.0), int(steps))
        for noise, rate, steps in entries
    )
    if not history:
        raise InvalidInput(
            "the accountant of Opacus has counted no step, so nothing is claimed yet; train first."
        )
    if min(noise for noise, _, _ in history) <= 0:
        raise InvalidInput(
            "the accountant of Opacus has counted steps without noise, which protect nothing; train with a noise multiplier above 0."
        )
    return history


def mechanism_of_steps(history: History, *, shuffled: bool) -> Composition:
    """Return the steps as a mechanism; in a shuffled table, each record certainly takes part in one step of every epoch."""
    parts, done = [], 0
    for noise, rate, steps in history:
        if shuffled:
            epoch = max(1, round(1 / rate))
            touched = math.ceil((done % epoch + steps) / epoch)
            done += steps
            rate, steps = 1.0, touched  # noqa: PLW2901
        parts.append(
            (
                PrivateTraining(
                    noise_multiplier=noise, sampling_rate=rate, steps=steps
                ),
                1,
            )
        )
    return Composition(parts=tuple(parts))


def _poisson_sampler(loader: Any) -> Any:
    """Return the sampler that draws Poisson samples for a loader, or None if it has none."""
    from opacus.utils.uniform_sampler import (
        DistributedUniformWithReplacementSampler,
        UniformWithReplacementSampler,
    )

    sampler = getattr(loader, "batch_sampler", None)
    for candidate in (sampler, getattr(sampler, "sampler", None)):
        if isinstance(
            candidate,
            UniformWithReplacementSampler | DistributedUniformWithReplacementSampler,
        ):
            return candidate
    return None


def _what_varies(
    rows: int, *, steps: int, drawn: int, batch: int | None, optimiser: Any
) -> str:
    """Return which number of a training would differ with one record more or less; empty if none would.

    Parameters
    ----------
    rows : int
        Number of records.
    steps, drawn : int
        Steps of an epoch, and the inverse of the sampling rate; they differ where a division is rounded down.
    batch : int or None
        Number of records in a batch, if it is known.
    optimiser : DPOptimizer
        The optimiser that divides the noisy sums.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> mean = SimpleNamespace(loss_reduction="mean", expected_batch_size=100)
    >>> _what_varies(1000, steps=10, drawn=10, batch=100, optimiser=mean)
    'the noisy sums were divided by 100, and with 999 records in place of 1000 it would have been 99'
    """

    def divisor(records: int) -> int:
        return int(records * (1 / steps))  # as Opacus computes it

    cut: Callable[[float], int] = math.ceil
    if batch is None:  # all batch sizes that give this number of batches
        fewer = math.ceil(rows / (drawn - 1)) if drawn > 1 else rows + 1
        sizes = range(math.ceil(rows / drawn), fewer)
    else:
        sizes = range(batch, batch + 1)
        if batch > 0 and cut(rows / batch) != drawn:
            cut = math.floor  # the last, smaller batch is dropped
        if batch < 1 or cut(rows / batch) != drawn:
            raise InvalidInput(
                f"{rows} records in batches of {batch} do not give the {drawn} batches of the loader; pass the batch size of the loader that was "
                "given to make_private."
            )
    expected = optimiser.expected_batch_size
    # Any other divisor was set by hand, and is a constant.
    if optimiser.loss_reduction == "mean" and expected == divisor(rows):
        for other in (rows - 1, rows + 1):
            if divisor(other) != expected:
                return f"the noisy sums were divided by {expected}, and with {other} records in place of {rows} it would have been {divisor(other)}"
    for size in sizes:
        for other in (rows - 1, rows + 1):
            if cut(other / size) != drawn:
                return (
                    f"a record takes part with probability 1/{drawn}, and with {other} records in place of {rows} it "
                    f"{'would' if batch else 'may'} have been 1/{cut(other / size)}"
                )
    return ""
