"""A small training by Opacus into which flaws are planted, watched with and without one record."""

import warnings

import opacus
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.train import claim_of_opacus
from reticent.train.tensors import OpacusObserver

INPUTS, HIDDEN, CLASSES = 10, 8, 3
ROWS, BATCH, EPOCHS, NOISE, DELTA = 222, 50, 6, 1.0, 1e-4
CLAIMS = {}  # by flaw and steps, because the claim follows from these
RECORD, TARGET = 5 * torch.ones(INPUTS), 1


class Training:
    """One run, with what a flaw may change before it begins.

    Parameters
    ----------
    number : int
        Number of the run, from which its seed follows.
    included : bool
        Whether the table holds the record.
    """

    def __init__(self, number, *, included=True):
        self.number, self.included = number, included
        self.after_step = None
        self.inserted = []

    def insert(self, layer):
        """Put a layer between the two others; only before the training is made private."""
        self.inserted.append(layer)

    def made(self, plant=None):
        """Make the training private, and plant a flaw."""
        torch.manual_seed(self.number)
        if plant is not None and plant.__name__ == "layers_that_mix":
            plant(self)
        generator = torch.Generator().manual_seed(0)
        X = torch.randn(ROWS - 1, INPUTS, generator=generator)
        y = torch.randint(CLASSES, (ROWS - 1,), generator=generator)
        if self.included:
            X, y = torch.cat([X, RECORD[None]]), torch.cat([y, torch.tensor([TARGET])])
        below = [nn.Linear(INPUTS, HIDDEN), nn.Tanh(), *self.inserted]
        net = nn.Sequential(*below, nn.Linear(HIDDEN, CLASSES))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.engine = opacus.PrivacyEngine(accountant="rdp")
            self.module, self.optimiser, self.loader = self.engine.make_private(
                module=net,
                optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
                data_loader=DataLoader(TensorDataset(X, y), batch_size=BATCH),
                noise_multiplier=NOISE,
                max_grad_norm=1.0,
            )
        self.epoch = len(self.loader)
        if plant is not None and plant.__name__ != "layers_that_mix":
            plant(self)
        return self

    def watched(self):
        """Train, and return the observer."""
        with (
            warnings.catch_warnings(),
            OpacusObserver(
                self.module,
                self.optimiser,
                self.loader,
                record=RECORD,
                target=TARGET,
                included=self.included,
            ) as observer,
        ):
            warnings.simplefilter("ignore")
            for _ in range(EPOCHS):
                for x, y in self.loader:
                    self.optimiser.zero_grad()
                    nn.functional.cross_entropy(self.module(x), y).backward()
                    self.optimiser.step()
                    if self.after_step is not None:
                        self.after_step(self)
        return observer

    def claim(self):
        """Return what Opacus claims."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return claim_of_opacus(
                self.engine,
                delta=DELTA,
                optimiser=self.optimiser,
                loader=self.loader,
                batch=BATCH,
            )


def watch(plant, numbers):
    """Return the observers of trainings with a flaw, in turn with and without the record, and the claim about the first."""
    trainings = [
        Training(number, included=place % 2 == 0).made(plant)
        for place, number in enumerate(numbers)
    ]
    observers = [training.watched() for training in trainings]
    steps = (plant, tuple(map(tuple, trainings[0].engine.accountant.history)))
    if steps not in CLAIMS:  # accounting takes as long as training does
        CLAIMS[steps] = trainings[0].claim()
    return observers, CLAIMS[steps]
