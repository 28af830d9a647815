"""Resolve and check the parameters of notebooks before a kernel starts.

Defaults come from the notebook's parameters cell; overrides come from `profiles/*.yml` and the command line. Names,
types, ranges and meanings come from the class `Parameters` of the chapter, whose module imports nothing slow.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import annotated_types
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import parse_yaml, read_yaml
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

# The type of the parameter `seed` in all chapters; `Annotated[Seed, Field(description=...)]` changes its meaning.
Seed = Annotated[int, Field(ge=0, lt=2**32, description="Seed of all random numbers.")]


class Parameters(BaseModel):
    """Base class of every chapter's `Parameters`: strict types, no unknown names, immutable, 64-bit whole numbers."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    @field_validator("*")
    @classmethod
    def _require_64_bits(cls, value: Any) -> Any:
        """Refuse whole numbers on which JAX and NumPy would fail after the kernel has started."""
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, int) and not -(2**63) <= number < 2**63:
                raise ValueError("a whole number must have at most 64 bits, because arrays cannot hold a longer one")
        return value


def each_once(at_least: int, because: str) -> Callable[[list], list]:
    """Return a validator that removes repeated values from a list and sorts it; use it in `AfterValidator`.

    Args:
      at_least: smallest allowed number of different values.
      because: the reason, which completes the sentence of the error message.
    """

    def check_list(values: list) -> list:
        unique = sorted(set(values))
        if len(unique) < at_least:
            raise ValueError(f"needs at least {at_least} different values, because {because}")
        return unique

    return check_list


def different(because: str) -> Callable[[list], list]:
    """Return a validator that refuses a list with repeated values and keeps its order; use it in `AfterValidator`.

    `because` is the reason, which completes the sentence of the error message.
    """

    def check_list(values: list) -> list:
        if len(set(values)) < len(values):
            raise ValueError(f"needs different values, because {because}")
        return values

    return check_list


def resolve(
    project: Project, notebook: Notebook, profile: str, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the parameters of a notebook: its defaults, overridden by `profile` and then by `overrides`.

    Names are checked, types are not. The function imports no chapter, so that every command can call it for all
    notebooks.

    Raises:
      UserError: if the profile or a parameter does not exist, or a value cannot be stored as JSON.
    """
    project.require_profile(profile)
    values = dict(notebook.defaults)
    for origin, changes in (
        (f"profiles/{profile}.yml: notebook", _profile(project, profile).get(notebook.name) or {}),
        ("Notebook", overrides or {}),
    ):
        for name, value in changes.items():
            if name not in values:
                raise UserError(f"{origin} {notebook.name!r} has no parameter {name!r}. {did_you_mean(name, values)}")
            values[name] = value
    for name, value in values.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"Parameter `{name}` of notebook {notebook.name!r} must be a plain, finite value, because records are "
                f"JSON. Got {value!r}."
            ) from error
    return values


def check(project: Project, notebook: Notebook, values: Mapping[str, Any]) -> Parameters:
    """Return `values` as the chapter's `Parameters`.

    Raises:
      UserError: if a value is refused; the message gives each parameter, its rule and its meaning.
    """
    model = model_of(project, notebook)
    if model.model_fields:
        notebook.require_parameters_cell()
    if set(notebook.defaults) != set(model.model_fields):
        missing = sorted(set(model.model_fields) - set(notebook.defaults))
        unknown = sorted(set(notebook.defaults) - set(model.model_fields))
        raise UserError(
            f"The parameters cell of {notebook.path.name} and the class `Parameters` of its chapter must name the same "
            f"parameters. Missing in the cell: {missing}; unknown to the chapter: {unknown}."
        )
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(explain(notebook.name, model, error)) from error


def model_of(project: Project, notebook: Notebook) -> type[Parameters]:
    """Return the class of a notebook's parameters.

    A notebook without a parameters cell, whose chapter has no module `parameters`, is a page without parameters: its
    class has no fields.
    """
    if not notebook.has_parameters_cell and not (project.chapter(notebook.name) / "parameters.py").is_file():
        return Parameters
    return parameters_of(project, notebook.name)


def parameters_of(project: Project, name: str) -> type[Parameters]:
    """Return the class `Parameters` of chapter `name`."""
    module_name = f"{project.settings.chapters}.{name}.parameters"
    file = f"{module_name.replace('.', '/')}.py"
    message = f"Notebook {name!r} needs a class `Parameters(companion.Parameters)` in {file}."
    try:
        module = project.import_module(module_name)
    except ModuleNotFoundError as error:
        if not module_name.startswith(str(error.name)):
            raise
        raise UserError(message) from error
    model = getattr(module, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, Parameters)):
        raise UserError(message)
    return model


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value of `name=value`; the value is read as YAML 1.2, in which `1e-3` is a number."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"A parameter is one word, name=value, for example -p seed=1. Got {text!r}.")
    return name.strip(), parse_yaml(value, f"The value {value!r} of parameter {name!r}")


def given_once(assignments: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the assignments as a mapping. Raise a `UserError` if a name is repeated."""
    values: dict[str, Any] = {}
    for name, value in assignments:
        if name in values:
            raise UserError(f"Parameter {name!r} is given twice: {values[name]!r} and {value!r}. Give it once.")
        values[name] = value
    return values


def check_profiles(project: Project) -> None:
    """Raise a `UserError` if a profile overrides a notebook that does not exist.

    Overrides of a notebook that exists and is not in the table of contents are ignored, as the notebook is.
    """
    for profile in project.profile_names():
        for name in _profile(project, profile):
            if name not in (*project.notebooks(), *project.unlisted_notebooks()):
                raise UserError(
                    f"profiles/{profile}.yml: there is no notebook {name!r}. {did_you_mean(name, project.notebooks())}"
                )


def _profile(project: Project, profile: str) -> dict[str, Any]:
    if profile == DEFAULT_PROFILE:
        return {}
    content = read_yaml(project.profiles / f"{profile}.yml") or {}
    if not isinstance(content, dict) or not all(isinstance(value, dict | None) for value in content.values()):
        raise UserError(f"profiles/{profile}.yml must map notebooks to overrides, as in `name: {{seed: 1}}`.")
    for name in (name for names in (content, *content.values()) for name in names or {}):
        if not isinstance(name, str):
            raise UserError(f"profiles/{profile}.yml: the name of a notebook or parameter must be text. Got {name!r}.")
    return content


def explain(notebook: str, model: type[BaseModel], error: ValidationError) -> str:
    """Return why `model` refused the values of a notebook's parameters, one sentence per parameter."""
    sentences = []
    for problem in error.errors():
        if not problem["loc"]:  # a rule about several parameters
            sentences.append(f"{problem['msg'][0].upper()}{problem['msg'][1:]}.")
            continue
        name = str(problem["loc"][0])
        element = name + "".join(f"[{step}]" for step in problem["loc"][1:])
        meaning = model.model_fields[name].description if name in model.model_fields else None
        meaning = (meaning or "").replace("$", "")  # around formulas
        sentences.append(
            f"`{element}`: {problem['msg'][0].lower()}{problem['msg'][1:]}. Got {problem['input']!r}."
            + (f" It means: {meaning}" if meaning else "")
        )
    return f"Invalid parameters of {notebook!r}.\n  " + "\n  ".join(sentences)


def rule(field: FieldInfo) -> str:
    """Return the type and the range of a parameter in words."""
    is_list = getattr(field.annotation, "__origin__", None) is list
    words = [_type(field.annotation)]
    for constraint in field.metadata:
        match constraint:
            case annotated_types.Ge(ge=bound):
                words.append(f"≥ {bound}")
            case annotated_types.Gt(gt=bound):
                words.append(f"> {bound}")
            case annotated_types.Le(le=bound):
                words.append(f"≤ {bound}")
            case annotated_types.Lt(lt=bound):
                words.append(f"< {bound}")
            case annotated_types.MinLen(min_length=least):
                words.append(f"{least} or more of them" if is_list else f"{least} characters or more")
            case annotated_types.MaxLen(max_length=most):
                words.append(f"{most} of them at most" if is_list else f"{most} characters at most")
    return ", ".join(words)


def _type(annotation: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if annotation in names:
        return names[annotation]
    if getattr(annotation, "__origin__", None) is list:
        return f"a list, each {_type(annotation.__args__[0])}"
    if hasattr(annotation, "__metadata__"):
        return rule(FieldInfo.from_annotation(annotation))
    return str(annotation).removeprefix("typing.")
