"""Each docstring of `lib` lists which of jit, vmap and grad work; here each is tried on an example.

The files `examples_*.py` of this folder hold the examples: `EXAMPLES` maps the full name of a function or method to a
maker, which returns a function of one pytree of arrays and the value at which it is tried. Random words and keys are
integers, by which nothing can be differentiated.
`LOWEST_CANDIDATES` names those that return the candidate with the least energy, `IN_NUMPY` some that compute with NumPy
if they are given its arrays: operation by operation, JAX would compile a hundred programs for them.
"""

import ast
import importlib.util
import inspect
import re
from functools import cached_property, lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TRANSFORMATIONS = ("jit", "vmap", "grad")
# Central differences have a relative error of about STEP² plus rounding / STEP.
STEP, DIFFERENCE_ERROR = 1e-5, 1e-5
# Programs that were transformed add the same numbers in another order.
ROUNDING = 1e-9
# An energy of about 1 is rounded by a few ε, so candidates at distances up to √(2·few ε/curvature) from its minimum are
# equal, and another order of summation chooses another one. The curvatures are at least 1.
ROUNDING_OF_LOWEST = float(np.sqrt(8 * np.finfo(float).eps))

# Modules and functions whose own tests try the transformations.
TESTED_ELSEWHERE = ("lib.icl.heads", "lib.mixtures", "lib.pairs", "lib.random.named_keys")

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILES = [_load(path) for path in sorted(FOLDER.glob("examples_*.py"))]
EXAMPLES = {name: make for file in FILES for name, make in file.EXAMPLES.items()}
LOWEST_CANDIDATES = set().union(*(getattr(file, "LOWEST_CANDIDATES", ()) for file in FILES))
IN_NUMPY = set().union(*(file.IN_NUMPY for file in FILES))


def listed_in(doc: str) -> set[str] | None:
    """The transformations that a docstring lists; None if it has no such line."""
    match = re.search(r"Transformations:\s+([a-z]+(?:,\s+[a-z]+)*)", doc)
    return None if match is None else set(re.split(r",\s+", match[1])) - {"none"}


def _documented() -> dict[str, set[str]]:
    """By the full name of a public function or method the transformations that its docstring lists."""
    documented = {}
    for path in sorted((ROOT / "lib").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            nodes = [(node, "")]
            if isinstance(node, ast.ClassDef):
                nodes = [(inner, f"{node.name}.") for inner in node.body]
            for function, owner in nodes:
                if isinstance(function, ast.FunctionDef):
                    listed = listed_in(inspect.cleandoc(ast.get_docstring(function) or ""))
                    full = f"{module}.{owner}{function.name}"
                    if listed is not None and not any(re.match("_(?!_)", part) for part in full.split(".")):
                        documented[full] = listed
    return documented


DOCUMENTED = {
    name: listed
    for name, listed in _documented().items()
    if not any(f"{name}.".startswith(f"{module}.") for module in TESTED_ELSEWHERE)
}


def is_float(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def as_numbers(tree) -> list[np.ndarray]:
    """The arrays of numbers in a pytree; keys are left out."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.number)]
    return [np.asarray(leaf, complex if jnp.iscomplexobj(leaf) else float) for leaf in leaves]


def assert_close(left, right, tolerance):
    for a, b in zip(as_numbers(left), as_numbers(right), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=1e-3))


def changed(change, *trees):
    """Apply a function of NumPy arrays, for which nothing is compiled, to the leaves of trees of JAX arrays."""
    return jax.tree.map(lambda *leaves: jnp.asarray(change(*map(np.asarray, leaves))), *trees)


class Example:
    """A function and its argument, with the transformations that it should allow."""

    def __init__(self, function, argument, *, listed=TRANSFORMATIONS, rounding=ROUNDING, in_numpy=False):
        self.function, self.listed, self.rounding, self.in_numpy = function, set(listed), rounding, in_numpy
        self.argument = jax.tree.map(jnp.asarray, argument)
        # one program is compiled faster than its operations
        self.compile = jax.jit if "jit" in listed else lambda function: function

    @cached_property
    def points(self):
        """The argument, one that is a little larger, and two at distance `STEP` for the derivative."""
        larger = changed(lambda leaf: 1.01 * leaf if is_float(leaf) else leaf + 1, self.argument)
        direction = jax.tree.map(symmetric_direction, self.argument)
        near = (
            changed(lambda x, v, s=s: x + s * v if is_float(x) else x, self.argument, direction) for s in (STEP, -STEP)
        )
        return self.argument, larger, *near

    def vectorised(self):
        """The values at the points by `vmap`."""
        batch = changed(lambda *leaves: np.stack(leaves), *self.points)
        results = as_numbers(self.compile(jax.vmap(self.function))(batch))
        return [[leaf[index] for leaf in results] for index in range(len(self.points))]

    @cached_property
    def direct(self):
        """The values at the first two points without transformations."""
        points = [jax.tree.map(np.asarray, point) if self.in_numpy else point for point in self.points[:2]]
        return [self.function(point) for point in points]

    @cached_property
    def values(self):
        """The values at the points: if `jit` and `vmap` work, by one program that shows both."""
        if {"jit", "vmap"} <= self.listed:
            return self.vectorised()
        compiled = self.compile(self.function)
        return [as_numbers(compiled(point)) for point in self.points]


@lru_cache(maxsize=1)
def example(name: str) -> Example:
    """The example of a function; its three tests follow each other and share a compiled program."""
    rounding = ROUNDING_OF_LOWEST if name in LOWEST_CANDIDATES else ROUNDING
    return Example(*EXAMPLES[name](), listed=DOCUMENTED[name], rounding=rounding, in_numpy=name in IN_NUMPY)


def check_jit(case):
    found = case.values[0] if "jit" in case.listed else jax.jit(case.function)(case.argument)
    assert_close(found, case.direct[0], case.rounding)


def check_vmap(case):
    """At the argument, and at one that is a little larger."""
    found = case.values if {"jit", "vmap"} <= case.listed else case.vectorised()
    for values, direct in zip(found[:2], case.direct, strict=True):
        assert_close(values, direct, case.rounding)


def check_grad(case):
    """The derivative of a weighted sum of the outputs in one direction, against a central difference."""

    def total(outputs):
        leaves = [leaf for leaf in jax.tree.leaves(outputs) if is_float(leaf)]
        return sum((np.cos(np.arange(leaf.size)).reshape(leaf.shape) * leaf).sum() for leaf in leaves)

    gradient = case.compile(jax.grad(lambda argument: total(case.function(argument))))(case.argument)
    assert all(np.isfinite(leaf).all() for leaf in as_numbers(gradient))
    direction = jax.tree.map(symmetric_direction, case.argument)
    products = [g * v for g, v in zip(*map(as_numbers, (gradient, direction)), strict=True)]
    slope, scale = (sum(size(product).sum() for product in products) for size in (np.asarray, np.abs))
    difference = (total(case.values[2]) - total(case.values[3])) / (2 * STEP)
    np.testing.assert_allclose(slope, difference, rtol=DIFFERENCE_ERROR, atol=DIFFERENCE_ERROR * float(scale) / 10)


def symmetric_direction(leaf):
    """Fixed numbers of the size of the leaf; symmetric where it is square, since it may be a covariance."""
    direction = np.sin(1.0 + np.arange(leaf.size)).reshape(leaf.shape) * np.abs(leaf).max()
    is_square = leaf.ndim >= 2 and leaf.shape[-1] == leaf.shape[-2]
    return (direction + np.swapaxes(direction, -1, -2)) / 2 if is_square else direction


CHECKS = {"jit": check_jit, "vmap": check_vmap, "grad": check_grad}


def works(name: str, transformation: str) -> None:
    CHECKS[transformation](example(name))


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_docstrings_list_exactly_the_transformations_that_work(name, transformation):
    assert name in EXAMPLES, f"no example of {name} in tests/lib/examples_*.py"
    if transformation in DOCUMENTED[name]:
        works(name, transformation)
    else:
        with pytest.raises(Exception):  # noqa: B017, PT011 — JAX has many errors for what it cannot transform
            works(name, transformation)


def test_docstrings_list_only_known_transformations():
    unknown = {name: extra for name, listed in DOCUMENTED.items() if (extra := listed - set(TRANSFORMATIONS))}
    assert unknown == {}


def test_examples_are_of_documented_functions():
    assert set(EXAMPLES) - set(DOCUMENTED) == set()


def test_a_wrong_gradient_is_noticed():
    """Neither a gradient that is stopped halfway nor a function of Python numbers passes."""
    with pytest.raises(AssertionError):
        check_grad(Example(lambda x: x * jax.lax.stop_gradient(x), 2.0))
    with pytest.raises(jax.errors.ConcretizationTypeError):
        check_jit(Example(lambda x: jnp.asarray(float(x)), 2.0))
