"""An Opacus run watched step by step: nothing of it changes, and its denominator gives the record away."""

import warnings

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
opacus = pytest.importorskip("opacus", reason="Opacus is not installed")

from reticent.attack import log_odds
from reticent.errors import InvalidInput
from reticent.pipeline import report_observed
from reticent.train.private.observer import OpacusObserver
from reticent.train.private.opacus import claim_of_opacus

ALARM = 1e-6
RECORD = 5 * torch.ones(20)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Run:
    """A training by Opacus, ready to be watched."""

    def __init__(
        self, seed, *, rows, included=True, hidden=16, noise=1.0, batch=50, **how
    ):
        generator = torch.Generator().manual_seed(0)
        X = torch.randn(rows - 1, 20, generator=generator)
        y = torch.randint(3, (rows - 1,), generator=generator)
        if included:
            X, y = torch.cat([RECORD[None], X]), torch.cat([torch.tensor([1]), y])
        torch.manual_seed(seed)
        module = torch.nn.Sequential(
            torch.nn.Linear(20, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 3)
        )
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        data = torch.utils.data.TensorDataset(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.engine = opacus.PrivacyEngine()
            self.module, self.optimiser, self.loader = self.engine.make_private(
                module=module,
                optimizer=optimiser,
                data_loader=torch.utils.data.DataLoader(data, batch_size=batch),
                noise_multiplier=noise,
                max_grad_norm=1.0,
                **how,
            )
        self.included = included

    def train(self, epochs=2):
        loss = torch.nn.functional.cross_entropy
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(epochs):
                for x, y in self.loader:
                    self.optimiser.zero_grad()
                    loss(self.module(x), y).backward()
                    self.optimiser.step()
        return self

    def observer(self):
        return OpacusObserver(
            self.module,
            self.optimiser,
            self.loader,
            record=RECORD,
            target=1,
            included=self.included,
        )

    def watched(self, epochs=2):
        with self.observer() as observer:
            self.train(epochs)
        return observer

    def claim(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return claim_of_opacus(
                self.engine,
                delta=1e-4,
                optimiser=self.optimiser,
                loader=self.loader,
                batch=50,
            )


def test_watching_changes_nothing():
    alone, watched = Run(3, rows=220).train(), Run(3, rows=220)
    watched.watched()
    for a, b in zip(
        alone.module.parameters(), watched.module.parameters(), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert alone.engine.accountant.history == watched.engine.accountant.history
    assert watched.optimiser.step_hook is not None  # the accountant's own, as before


def test_shares_and_noise_are_those_of_opacus(seed):
    """Along the record's share what is left after it is taken away is normal noise of the stated deviation."""
    trace, truth = Run(seed, rows=220).watched(epochs=80).seen()
    noise = truth.noise(trace)
    assert stats.kstest(noise.ravel(), "norm").pvalue > ALARM
    # The twin: forgetting that the record took part leaves its share in the noise.
    forgotten = type(truth)(first=truth.first, taken=np.zeros_like(truth.taken))
    assert abs(forgotten.noise(trace).mean()) > 2 * abs(noise.mean())
    low, high = stats.binom.ppf([ALARM / 2, 1 - ALARM / 2], truth.taken.size, 0.2)
    assert low <= truth.taken.sum() <= high


def test_a_denominator_that_depends_on_the_rows_refutes_the_claim():
    """200 rows in 4 batches are divided by 50, 199 by 49: with 25,000 parameters one step tells."""
    run = Run(1, rows=200, hidden=1_000)
    observer = run.watched()
    assert observer.denominators == (50, 49)
    trace, _ = observer.seen()
    assert log_odds(trace)[0, -1] > 10
    other = Run(1, rows=200, hidden=1_000, included=False).watched()
    assert log_odds(other.seen()[0])[0, -1] < -10
    found = report_observed(observer, run.claim())
    assert found.epsilons.refuted
    assert found.epsilons.proven is None
    assert any("divided by 50" in warning for warning in found.warnings)


def test_with_a_denominator_that_does_not_the_claim_stands():
    """The twin: 222 rows in 5 batches are divided by 44, and so are 221."""
    runs = [Run(s, rows=222, hidden=300, included=s % 2 == 0) for s in range(6)]
    observers = [run.watched() for run in runs]
    assert observers[0].denominators == (44, 44)
    found = report_observed(observers, runs[0].claim())
    assert not found.epsilons.refuted
    assert found.evidence.runs == 6
    assert abs(log_odds(observers[0].seen()[0])).max() < 15


def test_runs_that_differ_and_norms_by_layer_are_refused():
    run = Run(0, rows=220)
    with pytest.raises(InvalidInput, match="no step was observed"):
        run.observer().seen()
    short, long = run.watched(1), Run(0, rows=220).watched(2)
    with pytest.raises(InvalidInput, match="not the same training"):
        report_observed([short, long], run.claim())
    run.optimiser.max_grad_norm = [1.0, 1.0]
    with pytest.raises(InvalidInput, match="only one norm"):
        run.observer()
