"""What is run: tables in place of MIMIC-III, generators with their noise, models per setting. Fixed before the first run."""

from dataclasses import dataclass

DELTA = 1e-5
# Of Table 3.3: no noise, and the deviations that Algorithm 1 adds whatever the sensitivity is.
LEVELS = (0.0, 1e-7, 1e-6, 1e-5, 1e-4)
BUDGETS = (1.0, 3.0, 10.0)
# Steps of the generator in place of 200,000, which would take days; --curve shows what more of them change.
STEPS = 2_000
CURVE = (500, 1_000, 2_000, 4_000, 8_000)
MODELS = 10  # per setting: two, as in the thesis, cannot tell a gain from the spread over seeds
TABLES = ("stroke", "framingham", "cardio")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model to train and judge."""

    table: str
    generator: str  # healthgan, wgan, tree
    noise: float  # level of the thesis, or epsilon
    steps: int
    model: int

    @property
    def name(self) -> str:
        """What its result is kept under."""
        return f"{self.table} {self.generator} {self.noise:g} {self.steps} {self.model}"


def cells(tables: tuple[str, ...], models: int, *, curve: bool) -> list[Cell]:
    """Return all models of the tables, the first model of every setting first."""
    settings = [("healthgan", level, STEPS) for level in LEVELS]
    settings += [(name, epsilon, 0) for epsilon in BUDGETS for name in ("wgan", "tree")]
    if curve:
        settings += [("healthgan", 0.0, steps) for steps in CURVE if steps != STEPS]
    return [
        Cell(table=table, generator=generator, noise=noise, steps=steps, model=model)
        for model in range(models)
        for table in tables
        for generator, noise, steps in settings
    ]
