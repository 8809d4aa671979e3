"""A module of the user is audited, saved and audited again from the folder, by the command line."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import OutputRefused

# What is asked here is what is said, written and refused.

CODE = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.one, self.two = nn.Linear(inputs, 8), nn.Linear(8, classes)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))

class Sorting(Own):
    def forward(self, x):
        return super().forward(torch.sort(x)[0])

def focal(logits, targets):
    log = torch.log_softmax(logits, 1)
    return -(targets * (1 - log.exp()) ** 2 * log).sum(1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 3))
    y = np.where(x[:, 0] + rng.normal(size=160) > 0, "ill", "well")
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(outcome=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "nets_of_a_cli_test.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("nets_of_a_cli_test", None)


def audit(*arguments):
    fixed = ["t.csv", "--target", "outcome", "--rounds", 1, "--workers", 1, "--pool", 0]
    return CliRunner().invoke(app, ["audit", *map(str, [*fixed, *arguments])])


TRAINER = "reticent.Module('nets_of_a_cli_test:Own', epochs=30, loss='nets_of_a_cli_test:focal')"


def test_a_module_is_saved_and_audited_again_without_its_code(folder):
    first = audit("--trainer", TRAINER, "--out", "a", "--save-product", "p", "--json")
    assert first.exit_code in (0, 1, 3), first.output
    assert sorted(f.name for f in (folder / "p").iterdir()) == [
        "product.safetensors",
        "provenance.json",
    ]
    (folder / "nets_of_a_cli_test.py").unlink()
    sys.modules.pop("nets_of_a_cli_test", None)
    second = audit("--product", "p", "--out", "b", "--json")
    assert second.exit_code in (0, 1, 3), second.output
    told = [json.loads(result.stdout) for result in (first, second)]
    assert told[1]["provenance"]["recipe"] == TRAINER
    assert told[1]["utility"]["value"] == told[0]["utility"]["value"]

    # A folder may claim to be trained by any function: none is imported, let alone called.
    (folder / "evil_of_a_cli_test.py").write_text("raise SystemExit('executed')")
    file = folder / "p" / "provenance.json"
    changed = {
        "recipe": "reticent.PrivateModule('evil_of_a_cli_test:make')",
        "guarantee": GUARANTEE,
    }
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    third = audit("--product", "p", "--out", "c", "--json")
    assert json.loads(third.stdout)["provenance"]["recipe"] == changed["recipe"]
    assert "evil_of_a_cli_test" not in sys.modules


def test_what_cannot_be_saved_is_told_before_the_audit(folder):
    trainer = TRAINER.replace(":Own", ":Sorting")
    done = audit("--trainer", trainer, "--out", "a", "--save-product", "p")
    assert isinstance(done.exception, OutputRefused)
    assert "Sorting cannot be stored without code, because it calls torch.sort" in str(
        done.exception
    )
    assert not (folder / "a").exists()
    assert not (folder / "p").exists()


GUARANTEE = {
    "mechanism": "noise",
    "holds": True,
    "relation": "add/remove",
    "epsilon": 1.0,
    "delta": 1e-5,
    "noise_multiplier": 2.0,
    "sampling_rate": 0.1,
    "steps": 10,
    "advantage": 0.5,
    "belief": 0.7,
    "prior": 0.5,
    "tpr": 0.01,
    "fpr": 0.001,
}
