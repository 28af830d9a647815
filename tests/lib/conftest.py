"""The registry of measures that every law is tried on, regular, singular and nested; and chapters at smoke size."""

from pathlib import Path

import numpy as np
import pytest

from companion.project.notebooks import Notebook
from companion.project.parameters import check, resolve
from companion.project.paths import Project
from lib.measures import Empirical, Gaussian, GaussianMixture, Laplace, Pushforward, Rademacher, Uniform

_rng = np.random.default_rng(2512)
_MEAN = _rng.normal(size=3)
_TALL, _SQUARE = _rng.normal(size=(3, 2)), _rng.normal(size=(3, 3))
_MEANS = _rng.normal(size=(3, 3))
# The second component is a point, the third is flat.
_COVS = np.stack([0.3 * _SQUARE @ _SQUARE.T, np.zeros((3, 3)), 0.5 * _TALL @ _TALL.T])
_POINTS = _rng.normal(size=(7, 3))
_WIDE, _SHORT, _OFFSET = _rng.normal(size=(2, 3)), _rng.normal(size=2), _rng.normal(size=3)


def _mixture():
    return GaussianMixture(np.array([0.3, -1.0, 2.0]), Gaussian(_MEANS, _COVS))


MAKERS = {
    "gaussian": lambda: Gaussian(_MEAN, 0.4 * _SQUARE @ _SQUARE.T),
    "singular_gaussian": lambda: Gaussian(_MEAN, 0.4 * _TALL @ _TALL.T),
    "point": lambda: Gaussian(_MEAN, np.zeros((3, 3))),
    "mixture": _mixture,
    "empirical": lambda: Empirical(_POINTS),
    "one_token": lambda: Empirical(_POINTS[:1]),
    "rademacher": lambda: Rademacher(np.array([0.5, 1.0, 1.5])),
    "uniform": lambda: Uniform(np.array([0.5, 1.0, 2.0])),
    "laplace": lambda: Laplace(np.array([0.2, 0.3, 0.4])),
    "pushforward": lambda: Pushforward(Laplace(np.array([0.1, 0.2, 0.2])), _WIDE, _SHORT),
    "nested_pushforward": lambda: Pushforward(Pushforward(_mixture(), _WIDE, _SHORT), 0.5 * _WIDE.T, _OFFSET),
}


@pytest.fixture(params=MAKERS)
def make_measure(request):
    """Every law of the registry in turn, or the named ones under `parametrize(..., indirect=True)`."""
    return MAKERS[request.param]


@pytest.fixture
def measure(float64, make_measure):
    return make_measure()


@pytest.fixture(scope="session")
def smoke_parameters():
    """Return a function that returns the parameters of a notebook in the smoke profile."""

    def of(name):
        project = Project(Path(__file__).resolve().parents[2])
        notebook = Notebook.named(project, name)
        return check(notebook, resolve(project, notebook, "smoke"))

    return of
