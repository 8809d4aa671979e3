"""Turn records into products. The package is also a verb: ``reticent.train(X, y, belief=0.9)``."""

from reticent._verb import make_callable
from reticent.train._estimators import is_fitted
from reticent.train._plain import PlainTrainer
from reticent.train.adapted import AdaptedModuleTrainer
from reticent.train.adversarial import AdversarialNetwork
from reticent.train.generators import (
    Generator,
    RecipeGenerator,
    generator_of,
    parse_claimed_generator,
    parse_generator,
)
from reticent.train.judges import JUDGES, CodedRows, judge_scores
from reticent.train.many import train_many
from reticent.train.marginals import (
    FittedMarginals,
    MarginalGenerator,
    PrivateTable,
    size_class,
)
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.networks import (
    ModuleTrainer,
    NetworkTrainer,
)
from reticent.train.private.budget import (
    guarantee_of,
    proven_epsilon,
    spent,
    with_noise_for,
)
from reticent.train.private.classifier import PrivateNetworkClassifier
from reticent.train.private.opacus import (
    OpacusClaim,
    claim_of_opacus,
    product_of_module,
)
from reticent.train.private.release import (
    release_answers,
    release_choice,
    release_coordinates,
    release_numbers,
)
from reticent.train.private.trainers import PrivateModuleTrainer, PrivateNetworkTrainer
from reticent.train.recipes import (
    SGD,
    Adam,
    AdaptedModule,
    Module,
    Network,
    PrivateModule,
    PrivateNetwork,
    Training,
    fitting_batch,
)
from reticent.train.remedies import (
    Remedy,
    gentler_call,
    remedies_of_parameters,
)
from reticent.train.retaught import Distillation, LabelSmoothing
from reticent.train.soft import (
    PerRecord,
    RepairedLabels,
    SoftLabels,
    SoftLabelTrainer,
    Validated,
    with_noise_for_procedure,
)
from reticent.train.spec import (
    parse_claimed,
    parse_clipping,
    parse_trainer,
    private_trainer_of,
    spell,
    trainer_of,
)
from reticent.train.table_model import TableModel
from reticent.train.wgan import (
    HealthGAN,
    ReleasedCritic,
    WassersteinGenerator,
    load_critic,
)

__all__ = [
    "JUDGES",
    "SGD",
    "Adam",
    "AdaptedModule",
    "AdaptedModuleTrainer",
    "AdversarialNetwork",
    "CodedRows",
    "Distillation",
    "EstimatorTrainer",
    "FittedMarginals",
    "Generator",
    "HealthGAN",
    "LabelSmoothing",
    "MarginalGenerator",
    "Module",
    "ModuleTrainer",
    "Network",
    "NetworkTrainer",
    "OpacusClaim",
    "PerRecord",
    "PlainTrainer",
    "PrivateModule",
    "PrivateModuleTrainer",
    "PrivateNetwork",
    "PrivateNetworkClassifier",
    "PrivateNetworkTrainer",
    "PrivateTable",
    "RecipeGenerator",
    "ReleasedCritic",
    "Remedy",
    "RepairedLabels",
    "SoftLabelTrainer",
    "SoftLabels",
    "TableModel",
    "Training",
    "Validated",
    "WassersteinGenerator",
    "claim_of_opacus",
    "fitting_batch",
    "generator_of",
    "gentler_call",
    "guarantee_of",
    "is_fitted",
    "judge_scores",
    "load_critic",
    "parse_claimed",
    "parse_claimed_generator",
    "parse_clipping",
    "parse_generator",
    "parse_trainer",
    "private_trainer_of",
    "product_of_module",
    "proven_epsilon",
    "release_answers",
    "release_choice",
    "release_coordinates",
    "release_numbers",
    "remedies_of_parameters",
    "size_class",
    "spell",
    "spent",
    "standard_preprocessing",
    "train_many",
    "trainer_of",
    "with_noise_for",
    "with_noise_for_procedure",
]

make_callable(__name__, home="reticent.pipeline", verb="train")
