"""Public functions take lists, refuse complex numbers, accept empty arrays, and work with strict settings of JAX."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import jaxtyping
import numpy as np
import pytest

import lib
import lib.icl
import lib.single_location
from lib._checks import as_float, public
from lib.attention import Attention, attend, linear_attend
from lib.batching import in_batches, map_batched
from lib.finite_prompt import (
    QueryRay,
    mean_output,
    measured_statistics,
    participation,
    quadrature_error,
    rate_exponent,
    score_statistics,
    sink_statistics,
)
from lib.measures import Empirical, Gaussian, Laplace, empirical, tilted_cov, tilted_mean
from lib.partition import log_survival

ROOT = Path(__file__).resolve().parents[2]
TOKENS = [[0.3, -1.0], [1.2, 0.4], [-0.7, 0.2], [0.1, 0.9]]
QUERY = [0.7, -0.4]
SCORES = np.cos(np.arange(16.0)).reshape(4, 4).tolist()
COV = [[1.0, 0.3], [0.3, 0.5]]


@pytest.fixture(autouse=True)
def as_users_call_it(float64, quick_compilation, unchecked):
    """Users have no run-time type checks."""


def gaussian():
    return Gaussian([0.2, -0.1], COV)


def head():
    return Attention([[0.6, 0.1], [-0.2, 0.4]], [[1.0, 0.5]])


# a function of one argument, and that argument as a list
CASES = {
    "attend": (lambda x: attend(head(), Empirical(TOKENS), x), QUERY),
    "linear_attend": (lambda x: linear_attend(head(), gaussian(), x), QUERY),
    "tilted_mean": (lambda x: tilted_mean(Empirical(TOKENS), x), QUERY),
    "tilted_cov": (lambda x: tilted_cov(gaussian(), x), QUERY),
    "log_mgf": (lambda x: gaussian().log_mgf(x), QUERY),
    "log_mgf of Laplace tokens": (lambda x: Laplace([0.3, 0.2]).log_mgf(x), QUERY),
    "from_kqv": (lambda x: Attention.from_kqv(x, TOKENS, TOKENS).bilinear, TOKENS),
    "mean_output": (lambda x: mean_output(head(), gaussian(), x, 3.0), QUERY),
    "participation": (lambda x: participation(x, 3.0), [0.5, 1.0]),
    "log_survival": (lambda x: log_survival(x, 1.5), [-1.0, 0.5]),
    "measured_statistics": (measured_statistics, SCORES),
    "rate_exponent": (rate_exponent, [0.5, 2.0]),
    "QueryRay.queries": (lambda x: QueryRay.through(head(), gaussian(), QUERY).queries(x), [0.5, 2.0]),
    "QueryRay.read": (lambda x: QueryRay.through(head(), gaussian(), QUERY).read(x), [[0.5], [2.0]]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_a_list_gives_the_bytes_of_an_array(name):
    function, argument = CASES[name]
    of_list, of_array = (jax.tree.leaves(function(x)) for x in (argument, jnp.asarray(argument)))
    assert of_list
    assert [np.asarray(x).tobytes() for x in of_list] == [np.asarray(x).tobytes() for x in of_array]


@pytest.mark.parametrize("name", CASES)
def test_a_complex_argument_is_refused(name):
    function, argument = CASES[name]
    with pytest.raises(ValueError, match=r"must be real: the imaginary part would be lost. Got the type complex128\."):
        function(jnp.asarray(argument) + 1j)


def test_complex_numbers_are_refused_everywhere():
    with pytest.raises(ValueError, match="must be real"):
        participation(np.ones(2) * 1j, 3.0)
    for make in (lambda: Empirical(np.ones((2, 2)) * 1j), lambda: Gaussian([1j, 0], COV), lambda: as_float(1j)):
        with pytest.raises(ValueError, match="must be real"):
            make()


@pytest.mark.parametrize(
    "setting",
    [("jax_numpy_dtype_promotion", "strict"), ("jax_numpy_rank_promotion", "raise")],
    ids="=".join,
)
@pytest.mark.parametrize("name", [*CASES, "sample", "empirical"])
def test_strict_settings_of_the_user_change_no_result(name, setting):
    cases = CASES | {
        "sample": (lambda x: Gaussian(x, COV).sample(3, key=jr.key(0)), QUERY),
        "empirical": (lambda x: empirical(Gaussian(x, COV), 3, key=jr.key(0)).points, QUERY),
    }
    function, argument = cases[name]
    expected = jax.tree.leaves(function(argument))
    before = getattr(jax.config, setting[0])
    jax.config.update(*setting)
    try:
        strict = jax.tree.leaves(jax.jit(function)(jnp.asarray(argument))) if name == "attend" else None
        got = jax.tree.leaves(function(argument))
        assert getattr(jax.config, setting[0]) == setting[1]
    finally:
        jax.config.update(setting[0], before)
    assert [np.asarray(x).tobytes() for x in got] == [np.asarray(x).tobytes() for x in expected]
    if strict is not None:
        np.testing.assert_allclose(strict[0], expected[0], rtol=1e-12)


def test_functions_of_no_number_return_no_number():
    assert participation(np.zeros(0), 3.0).shape == (0,)
    assert score_statistics(np.zeros((2, 0)), 3.0).score_error.shape == (2, 0)
    assert sink_statistics(np.zeros(0), 3.0, 1.0).score_error.shape == (0,)
    assert quadrature_error(np.zeros(0), 3.0).shape == quadrature_error(np.zeros(0), 3.0, 1.0).shape == (0,)
    assert in_batches(lambda x: np.stack([x, x], 1), np.zeros(0)).shape == (0, 2)
    assert map_batched(lambda x: x @ x, np.zeros((0, 3)), size=3).shape == (0,)


def test_scores_that_overflow_are_not_explained_by_laplace_tokens():
    with pytest.raises(ValueError, match=r"or the scores ⟨ξ, z⟩ are too large for float64\.") as caught:
        tilted_mean(Empirical(np.full((2, 2), 1e200)), [1e200, 1e200])
    assert "Laplace" not in str(caught.value)


@pytest.mark.parametrize("package", [lib, lib.icl, lib.single_location], ids=lambda package: package.__name__)
def test_every_exported_function_has_the_checks(package):
    unchecked = [
        name
        for name, value in vars(package).items()
        if not name.startswith("_")
        and inspect.isroutine(value)
        and not getattr(value, "is_public", False)
        and inspect.signature(value).parameters
    ]
    assert unchecked == []


def test_the_checks_keep_name_signature_and_docstring():
    def double(x: jaxtyping.Float[jaxtyping.Array, "n"], y: float = 2.0):
        """Return twice x."""
        return x * y

    checked = public(double)
    assert (checked.__name__, checked.__doc__) == ("double", "Return twice x.")
    assert inspect.signature(checked) == inspect.signature(double)
    assert checked([1.0], y=3.0) == 3.0


def test_the_example_of_the_readme_raises_no_warning():
    """JAX will refuse what it warns about."""
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", example[1].replace("100_000", "1_000")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


def _unexported() -> list[str]:
    """Names without an underscore, of modules without one, that neither a package exports nor `__all__` lists."""
    found = []
    for path in sorted((ROOT / "lib").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if any(part.startswith("_") for part in parts):
            continue
        module = importlib.import_module(".".join(parts))
        package = importlib.import_module(".".join(parts[:-1]))
        offered = set(getattr(module, "__all__", ())) | set(vars(package))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            names += [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
            found += [f"{module.__name__}.{name}" for name in names if not name.startswith("_") and name not in offered]
    return found


def test_every_name_without_underscore_is_exported():
    assert _unexported() == []


def test_what_a_module_offers_exists():
    for name in ("flow", "mixtures", "pairs", "random", "statistics"):
        module = importlib.import_module(f"lib.{name}")
        assert module.__all__
        assert set(module.__all__) <= set(vars(module))


def test_chapters_import_no_private_name():
    private = [
        f"{path.relative_to(ROOT)}: {node.module}.{alias.name}"
        for path in sorted((ROOT / "chapters").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lib"
        for alias in node.names
        if any(part.startswith("_") for part in (*(node.module or "").split("."), alias.name))
    ]
    assert private == []
