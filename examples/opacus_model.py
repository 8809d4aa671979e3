"""Train a model with Opacus, read the claim about it, and save it so that `reticent audit --product` can test the claim."""

import sys
import warnings

import numpy as np
import opacus
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.account import Relation
from reticent.data import builtin_table
from reticent.pipeline import divide, report_observed
from reticent.product import (
    Encoder,
    Provenance,
    save_product,
    table_digest,
    versions,
)
from reticent.report import refuted_sentence, save_identification
from reticent.train import claim_of_opacus, product_of_module
from reticent.train.private.observer import OpacusObserver

folder = sys.argv[1] if len(sys.argv) > 1 else "opacus_product"
warnings.simplefilter("ignore")  # what Opacus warns about is among the caveats
torch.manual_seed(0)

# Typical values that any doctor knows, not those of these records: age, sex, bmi, pressure, six measures of the blood.
CENTRE = np.array([50, 1.5, 26, 95, 190, 115, 50, 4, 4.6, 90])
SCALE = np.array([15, 0.5, 5, 15, 35, 30, 13, 1.3, 0.5, 12])

SEED = 0
table = builtin_table()
members = divide(table, seed=SEED).defender  # the others are left for the audit
numbers = (Encoder.of(table).matrix(members.features) - CENTRE) / SCALE
data = TensorDataset(
    torch.from_numpy(numbers.astype(np.float32)), torch.from_numpy(members.target)
)

engine = opacus.PrivacyEngine(accountant="rdp")
module, optimiser, loader = engine.make_private(
    module=(net := nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))),
    optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    data_loader=DataLoader(data, batch_size=16, shuffle=True),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
# The strongest adversary sees every step, and asks whether the first record was used.
record, target = data[0]
with OpacusObserver(
    module, optimiser, loader, record=record, target=int(target)
) as observer:
    for _ in range(15):
        for x, y in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            optimiser.step()

claim = claim_of_opacus(
    engine, delta=1e-3, optimiser=optimiser, loader=loader, batch=16
)
print(f"Opacus claims epsilon {claim.epsilon:.2f} at delta {claim.delta:g}")
for relation in Relation:
    status = "no guarantee" if relation in claim.void else "guaranteed"
    epsilon = claim.proven_epsilon(relation)
    print(f"its steps give {epsilon:.2f} under {relation.value} ({status})")
for caveat in claim.caveats:
    print(f"- {caveat}")

product = product_of_module(module, table, centre=CENTRE, scale=SCALE)
provenance = Provenance(
    recipe=f"Opacus {opacus.__version__}",
    data_fingerprint=table_digest(table, seed=SEED),
    seed=SEED,
    classes=table.classes,
    versions=versions(),
    claimed_epsilon=claim.epsilon,
    guarantee=claim.guarantee(),
)
save_product(folder, product, provenance)
watched = report_observed(observer, claim, neighbour="the first record")
save_identification(watched, folder)  # beside the product, so that its audit shows it
print(refuted_sentence(watched.epsilons))
for check in watched.departures:
    print(f"- not true: {check.asked}; found: {check.found}")
print(f"saved; audit it with: reticent audit --product {folder}")
