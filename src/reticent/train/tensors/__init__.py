"""Train and watch networks on tensors of your own, below the level of tables; needs the extra ``torch``.

Trainers encode a table and call these functions. Experiments on pictures and benchmarks of the engine call them directly. No product comes out
of it: nothing here is saved, released or audited.
"""

from reticent.product.module_internals import internals_of_module
from reticent.train.adaptation import Adaptation, train_adapted
from reticent.train.engine import Networks, train_networks
from reticent.train.modules import Modules, train_modules
from reticent.train.private.modules import (
    gradients_of_records,
    train_modules_privately,
)
from reticent.train.private.networks import train_privately
from reticent.train.private.observer import OpacusObserver
from reticent.train.private.watched import (
    Neighbours,
    module_shares_at_start,
    network_shares_at_start,
    watch_modules,
    watch_networks,
)
from reticent.train.stacking import Cohort, View

__all__ = [
    "Adaptation",
    "Cohort",
    "Modules",
    "Neighbours",
    "Networks",
    "OpacusObserver",
    "View",
    "gradients_of_records",
    "internals_of_module",
    "module_shares_at_start",
    "network_shares_at_start",
    "train_adapted",
    "train_modules",
    "train_modules_privately",
    "train_networks",
    "train_privately",
    "watch_modules",
    "watch_networks",
]
