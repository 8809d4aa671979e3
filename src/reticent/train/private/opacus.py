r"""Models trained with Opacus: what is claimed of them, what that is worth, and the model as a product.

Opacus keeps a history of its steps: noise over the clipping bound, probability of a record to take part, number of steps. That is a
mechanism, and its privacy loss distribution gives the epsilon that holds for it. What the history leaves out is looked up in the
engine, the optimiser and the loader, and told as caveats:

- Noisy sums are divided by the number of records over the number of batches, rounded down. With one record more or less that is
  another number, so the scale of the noise alone tells the two tables apart (issues 571 and 819 of Opacus): what holds is
  a guarantee for replacing a record.
- Without secure mode noise comes from PyTorch's generator, which on a CPU keeps 32 bits of its seed: all :math:`2^{32}` streams of noise
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

__all__ = ["OpacusClaim", "claim_of_opacus", "product_of_module"]

DEFAULT_SEED = 67280421310721  # of every torch.Generator() that is given none
BOTH = (Relation.ADD_REMOVE, Relation.REPLACE)
History = tuple[tuple[float, float, int], ...]


@dataclass(frozen=True, kw_only=True)
class OpacusClaim:
    """What Opacus claims of a training, and what can be said of the claim.

    Parameters
    ----------
    epsilon, delta : float
        As its own accountant has them, for adding or removing a record.
    accountant : str
        ``rdp``, ``prv`` or ``gdp``.
    history : tuple of (noise multiplier, sampling rate, steps)
        What the accountant knows of the training.
    mechanism : Composition
        The steps as they were done; ``trade_off(mechanism)`` is what holds for them where the guarantee is not void.
    rows : int
        Records of the training.
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
        """Return the guarantee that travels with the product; its numbers are those of the steps, not those claimed.

        Parameters
        ----------
        relation : Relation
            When tables are neighbours.
        prior, fpr : float
            Belief before the release, and the rate at which the true-positive rate is stated.
        """
        found = trade_off(self._under(relation))
        return Guarantee(
            mechanism=self._words(),
            holds=relation not in self.void,
            relation=relation.value,
            epsilon=found.epsilon(self.delta),
            delta=self.delta,
            noise_multiplier=min(noise for noise, _, _ in self.history),
            sampling_rate=max(rate for _, rate, _ in self.history),
            steps=sum(steps for _, _, steps in self.history),
            advantage=found.advantage,
            belief=found.belief(self.delta, prior=prior),
            prior=prior,
            tpr=found.tpr(fpr),
            fpr=fpr,
            caveats=self.caveats,
            public=(
                f"the number of rows ({self.rows:,})",
                "names, kinds and categories of the columns, and their centre and scale: if these were worked out from the records, "
                "nothing protects what they tell",
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
            f"{self.accountant} says epsilon {self.epsilon:.3g}"
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
    """Return what Opacus claims of a training that is done, and what speaks against it.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        Which has counted the steps.
    delta : float
        At which epsilon is claimed.
    optimiser, loader
        As ``make_private`` has returned them.
    rows : int, optional
        Records of the training; by default as many as the loader's data set has.
    batch : int, optional
        Batch size of the loader that was given to ``make_private``. Without it, every size that makes as many batches is thought of.

    Raises
    ------
    InvalidInput
        If no step was done, a step had no noise, or the number of rows or the batch is not that of the loader.
    """
    in_open_unit(delta, "delta")
    found = len(loader.dataset)
    if rows is not None and rows != found:
        raise InvalidInput(
            f"the loader has {found} records where {rows} are named, so that its steps would be accounted for another table; pass the "
            "loader that make_private returned."
        )
    history = _history(engine.accountant.history)
    accountant = str(engine.accountant.mechanism())
    caveats: list[str] = []
    void: set[Relation] = set()
    if not engine.secure_mode:
        void.update(BOTH)
        caveats.append(
            "the noise came from PyTorch's generator, not from secure mode: it follows from a seed, of which 32 bits are kept on a CPU, and "
            "whoever tries them can subtract it"
        )
        generator = getattr(optimiser, "generator", None)
        if generator is not None and generator.initial_seed() == DEFAULT_SEED:
            caveats.append(
                "that generator was made without a seed, so its seed is the one that PyTorch gives to all, and everybody knows the noise"
            )
    sampler = _poisson_sampler(loader)
    if sampler is None:
        void.add(Relation.ADD_REMOVE)
        caveats.append(
            "batches were cut from a shuffled table, and the claim accounts them as Poisson samples, which protect more: the steps are "
            "stated here without what sampling would add"
        )
    elif max(rate for _, rate, _ in history) < sampler.sample_rate * (1 - 1e-9):
        void.update(BOTH)
        caveats.append(
            f"records were drawn with probability {sampler.sample_rate:.4g}, more than the {max(rate for _, rate, _ in history):.4g} that is "
            "accounted for"
        )
    varies = _what_varies(
        found,
        steps=len(loader),
        drawn=len(loader) if sampler is None else round(1 / sampler.sample_rate),
        batch=batch,
        optimiser=optimiser,
    )
    if varies:
        void.add(Relation.ADD_REMOVE)
        caveats.append(
            f"{varies}: that alone tells tables apart that differ by a record's presence, so the guarantee is one for replacing a "
            "record only"
        )
    if type(optimiser).__name__ == "AdaClipDPOptimizer":
        void.update(BOTH)
        caveats.append(
            "the clipping bound followed a noisy count over the exact size of each batch, which has no noise and is not accounted for"
        )
    if accountant == "gdp":
        caveats.append(
            "the accountant gdp is an approximation for many steps and no bound: what it claims can be below the truth"
        )
    return OpacusClaim(
        epsilon=float(engine.accountant.get_epsilon(delta)),
        delta=delta,
        accountant=accountant,
        history=history,
        mechanism=_mechanism(history, shuffled=sampler is None),
        rows=found,
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
    """Return a module that was trained elsewhere as a product, a copy that can be saved.

    Parameters
    ----------
    module : nn.Module
        From (n, inputs) to (n, classes) logits; what Opacus has wrapped around it is taken off.
    table : Table
        Whose columns it sees, as ``Encoder.of(table)`` turns them into numbers, and whose classes it tells apart in their order.
    centre, scale : array of float, shape (inputs,), optional
        If it was trained on ``(numbers - centre) / scale``, these; by default 0 and 1.
    warnings : sequence of str
        What users should know of the training.

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
        made = np.asarray(default if values is None else values, dtype=np.float32)
        if made.shape not in ((), (encoder.width,)):
            raise InvalidInput(
                f"{name} has the shape {made.shape}, but the module sees {encoder.width} columns; pass one number for each."
            )
        scaling.append(np.full(encoder.width, made, dtype=np.float32))
    return ModuleProduct(
        encoder=encoder,
        module=module,
        centre=scaling[0],
        scale=scaling[1],
        classes=table.classes,
        warnings=tuple(warnings),
    ).copied()


def _history(found: Sequence[Sequence[float]]) -> History:
    history = tuple(
        (float(noise), min(float(rate), 1.0), int(steps))
        for noise, rate, steps in found
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


def _mechanism(history: History, *, shuffled: bool) -> Composition:
    """Return the steps as a mechanism; of a shuffled table each record takes part in one step of every epoch, for sure."""
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
    """Return what draws Poisson samples for a loader, or None if nothing does."""
    from opacus.utils.uniform_sampler import (
        DistributedUniformWithReplacementSampler,
        UniformWithReplacementSampler,
    )

    sampler = getattr(loader, "batch_sampler", None)
    for one in (sampler, getattr(sampler, "sampler", None)):
        if isinstance(
            one,
            UniformWithReplacementSampler | DistributedUniformWithReplacementSampler,
        ):
            return one
    return None


def _what_varies(
    rows: int, *, steps: int, drawn: int, batch: int | None, optimiser: Any
) -> str:
    """Return what would be another number in a training with one record more or less; empty if nothing would.

    Parameters
    ----------
    rows : int
        Records.
    steps, drawn : int
        Steps of an epoch, and the inverse of the sampling rate; they differ where a division is rounded down.
    batch : int or None
        Records of a batch, if that is known.
    optimiser : DPOptimizer
        Which divides the noisy sums.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> mean = SimpleNamespace(loss_reduction="mean", expected_batch_size=100)
    >>> _what_varies(1000, steps=10, drawn=10, batch=100, optimiser=mean)
    'the noisy sums were divided by 100, and with 999 records in place of 1000 it would have been 99'
    """

    def divisor(records: int) -> int:
        return int(records * (1 / steps))  # as Opacus has it

    cut: Callable[[float], int] = math.ceil
    if batch is None:  # all that give so many batches
        fewer = math.ceil(rows / (drawn - 1)) if drawn > 1 else rows + 1
        sizes = range(math.ceil(rows / drawn), fewer)
    else:
        sizes = range(batch, batch + 1)
        if batch > 0 and cut(rows / batch) != drawn:
            cut = math.floor  # the last, smaller batch is dropped
        if batch < 1 or cut(rows / batch) != drawn:
            raise InvalidInput(
                f"{rows} records in batches of {batch} do not make the {drawn} batches of the loader; pass the batch size of the loader that was "
                "given to make_private."
            )
    own = optimiser.expected_batch_size
    # Another divisor was set by hand, and is a constant.
    if optimiser.loss_reduction == "mean" and own == divisor(rows):
        for other in (rows - 1, rows + 1):
            if divisor(other) != own:
                return f"the noisy sums were divided by {own}, and with {other} records in place of {rows} it would have been {divisor(other)}"
    for size in sizes:
        for other in (rows - 1, rows + 1):
            if cut(other / size) != drawn:
                return (
                    f"a record takes part with probability 1/{drawn}, and with {other} records in place of {rows} it "
                    f"{'would' if batch else 'may'} have been 1/{cut(other / size)}"
                )
    return ""
