"""One decorator makes an experiment of a function: parameters checked, float64 opened, the result named."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec

import jax
from pydantic import ConfigDict, create_model

from lib.experiments.result import Result

P = ParamSpec("P")

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def experiment(compute: Callable[P, Result]) -> Callable[P, Result]:
    """Wrap `compute(*, name: Annotated[type, Field(...)], ...) -> Result`.

    The signature is the only place that says types, ranges and meanings; pydantic reads the check from it, and so
    does the runner, through `.parameters_model`. Inside, JAX computes in float64; outside, nothing changed.
    """
    fields = {
        name: (parameter.annotation, ...)
        for name, parameter in inspect.signature(compute, eval_str=True).parameters.items()
    }
    model = create_model(compute.__name__, __config__=STRICT, **fields)  # pyright: ignore

    @functools.wraps(compute)
    def run(**parameters):
        checked = model.model_validate(parameters).model_dump()
        with jax.enable_x64(True):
            result = compute(**checked)  # pyright: ignore
        return replace(result, experiment=compute.__name__, parameters=checked)

    run.parameters_model = model  # pyright: ignore
    return run  # pyright: ignore
