"""Every example runs, at a small size."""

import runpy
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
SELECTION = "--users 10 20 --users-outside 20 --sizes 4 --classes 2 --episodes 4"
PLAYED = {
    "animation.py": (
        "--labels 32 --users 6 --frames 3 --gif PICTURE",
        "split                total KL",
    ),
    "ask.py": (
        "--hypotheses disjoint --num-hypotheses 4 --horizon 100 --steps 4096 --seeds 1 --episodes 2",
        "optimum            total KL  15.06",
    ),
    "ask_meta.py": ("--updates 1 --rounds 4 --episodes 16 --csv TABLE", "PPO, seed 0: score"),
    "audit_others.py": (
        "--trials 2000",
        "numpy, randomized response: no proof that the claim of eps = 0.5",
    ),
    "calibration.py": ("--horizon 20 --episodes 2 --csv TABLE", "gaussian-vector"),
    "channels.py": (
        "--shapes 3x4 --horizon 20 --episodes 2 --tables 2 --csv TABLE",
        "adaptive-split",
    ),
    "cleanrl_ppo.py": ("--updates 1 --episodes 2 --horizon 50", "cleanrl  total KL"),
    "first_episode.py": ("", "total KL"),
    "hypothesis_selection.py": (f"{SELECTION} --most 64 --csv . --picture PICTURE", "tournament"),
    "languages.py": ("--words 6 --users 10 --episodes 2 --csv TABLE --picture PICTURE", "M = "),
    "limit.py": ("--sizes 3 --horizons 20 --episodes 4 --csv TABLE", "adaptive-groups"),
    "model_selection.py": ("--users 12 --repeats 2 --csv TABLE", "uniform mixture"),
    "optimum.py": ("--size 3 --horizon 8 --episodes 20 --iterations 2", "policy 1"),
    "own_channel.py": (
        "--horizon 20 --episodes 2 --csv TABLE",
        "claims eps = 1, has 1.0000: the promise holds",
    ),
    "own_learner.py": ("", "Fading"),
    "refined.py": ("--parts 1 3 --horizon 20 --episodes 2 --csv TABLE", "randomized-response"),
    "survey.py": ("", "refused: there is no label 'lemonade'"),
    "train_ppo.py": ("--steps 4096 --episodes 16", "ppo      total KL"),
    "vector.py": ("--games 4 --horizon 20", "in lock step"),
}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(script, monkeypatch, capsys, tmp_path):
    files = {"PICTURE": "picture.png", "TABLE": "table.csv"}
    options, printed = PLAYED[script]
    small = [files.get(word, word) for word in options.split()]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, *small])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert printed in capsys.readouterr().out
    for file in files.values():
        assert Path(file).exists() == (file in small)


def test_the_batch_methods_find_every_member_from_many_users():
    """With a million users a comparison errs by about 0.01, far below half a pair's distance."""
    example = runpy.run_path(str(EXAMPLES / "hypothesis_selection.py"))
    table = example["draw_class"](8, seed=0)
    for method in example["METHODS"]:
        chosen = example["picks"](method, table, table, 1_000_000, 1.0, 2)
        assert (chosen == np.arange(8)[:, None]).all()


def beliefs_about_three_models():
    """Five rows of weights, their logarithms, t / T and a table, as LDPAskMeta-v0 shows them."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(3), 5)
    tables = rng.dirichlet(np.ones(4), (5, 3))
    progress = np.full((5, 1), 0.25)
    return weights, progress, tables


def observations(weights, progress, tables):
    parts = [weights, np.log(weights), progress, tables.reshape(len(tables), -1)]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def test_a_policy_that_reads_tables_asks_the_same_if_models_and_labels_change_places():
    example = runpy.run_path(str(EXAMPLES / "ask_meta.py"))
    torch.manual_seed(0)
    policy = example["Policy"](example["Agent"](3))
    weights, progress, tables = beliefs_about_three_models()
    contrasts, _ = policy.predict(observations(weights, progress, tables))

    models = [2, 0, 1]
    labels = [3, 1, 0, 2]
    moved = observations(weights[:, models], progress, tables[:, models][:, :, labels])
    contrasts_of_moved, _ = policy.predict(moved)
    np.testing.assert_allclose(contrasts_of_moved, contrasts[:, models], atol=1e-4)


def test_contrasts_of_preferences_weigh_models_by_the_posterior():
    """Preferences 3, 1 and 0 have the mean 2 under the weights, so the contrast is in proportion to
    0.6 (3 - 2), 0.2 (1 - 2) and 0.2 (0 - 2)."""
    example = runpy.run_path(str(EXAMPLES / "ask_meta.py"))
    preferences = torch.tensor([[3.0, 1.0, 0.0]])
    weights = torch.tensor([[0.6, 0.2, 0.2]])
    contrast = example["contrasts_of"](preferences, weights)
    np.testing.assert_allclose(contrast, [[1.0, -1.0 / 3.0, -2.0 / 3.0]], atol=1e-6)


@pytest.mark.filterwarnings("default")  # what the kernel's own machinery warns of is not ours
def test_the_notebook_runs_from_top_to_bottom():
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    kept = [[output.get("text") for output in cell.get("outputs", [])] for cell in notebook.cells]
    NotebookClient(notebook, timeout=1800, startup_timeout=600, kernel_name="python3").execute()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output
    ]
    assert len(pictures) == 4
    assert "risk" in "".join(text for texts in kept for text in texts if text)
