"""Resolve and check the parameters of notebooks before a kernel starts.

Defaults come from the notebook's parameters cell; overrides come from `profiles/*.yml` and the command line. Names,
types, ranges and meanings come from the class `Parameters` of the chapter, whose module imports nothing slow.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import parse_yaml, read_yaml
from companion.project.notebooks import PARAMETERS_TAG, Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

# Constraints of pydantic, in words.
CONSTRAINTS = {
    "ge": "≥ {}",
    "gt": "> {}",
    "le": "≤ {}",
    "lt": "< {}",
    "min_length": "{} or more of them",
    "max_length": "{} of them at most",
}
# The type of the parameter `seed` in all chapters; `Annotated[Seed, Field(description=...)]` changes its meaning.
Seed = Annotated[int, Field(ge=0, lt=2**32, description="Seed of all random numbers.")]


class Parameters(BaseModel):
    """Base class of every chapter's `Parameters`: strict types, no unknown names, immutable."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


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
      UserError: if the profile or a parameter does not exist.
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
    return values


def check(project: Project, notebook: Notebook, values: Mapping[str, Any]) -> Parameters:
    """Return `values` as the chapter's `Parameters`.

    Raises:
      UserError: if a value is refused; the message gives each parameter, its rule and its meaning.
    """
    model = parameters_of(project, notebook.name)
    if set(notebook.defaults) != set(model.model_fields):
        missing = sorted(set(model.model_fields) - set(notebook.defaults))
        unknown = sorted(set(notebook.defaults) - set(model.model_fields))
        raise UserError(
            f"The cell of {notebook.path.name} that is tagged `{PARAMETERS_TAG}` and the class `Parameters` of its "
            f"chapter must name the same parameters. Missing in the cell: {missing}; unknown to the chapter: {unknown}."
        )
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(explain(notebook.name, model, error)) from error


def parameters_of(project: Project, name: str) -> type[Parameters]:
    """Return the class `Parameters` of chapter `name`.

    A notebook without a parameters cell, whose chapter has no module `parameters`, is a page without parameters: its
    class has no fields.
    """
    has_module = (project.chapter(name) / "parameters.py").is_file()
    if not has_module and Notebook(project.notebook(name)).parameters_cell is None:
        return Parameters
    module = f"{project.settings.chapters}.{name}.parameters"
    model = getattr(project.import_module(module), "Parameters", None) if has_module else None
    if not (isinstance(model, type) and issubclass(model, Parameters)):
        file = f"{module.replace('.', '/')}.py"
        raise UserError(f"Notebook {name!r} needs a class `Parameters(companion.Parameters)` in {file}.")
    return model


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value of `name=value`; the value is read as YAML 1.2, in which `1e-3` is a number."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"A parameter is one word, name=value, for example -p seed=1. Got {text!r}.")
    return name.strip(), parse_yaml(value, f"The value {value!r} of parameter {name!r}")


def check_profiles(project: Project) -> None:
    """Raise a `UserError` if a profile overrides a notebook that does not exist."""
    for profile in project.profile_names():
        for name in _profile(project, profile):
            if not project.notebook(name).is_file():
                raise UserError(
                    f"profiles/{profile}.yml: there is no notebook {name!r}. {did_you_mean(name, project.notebooks())}"
                )


def _profile(project: Project, profile: str) -> dict[str, Any]:
    if profile == DEFAULT_PROFILE:
        return {}
    content = read_yaml(project.profiles / f"{profile}.yml") or {}
    if not isinstance(content, dict) or not all(isinstance(value, dict | None) for value in content.values()):
        raise UserError(f"profiles/{profile}.yml must map notebooks to overrides, as in `name: {{seed: 1}}`.")
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
    words = [_type(field.annotation)]
    for constraint in field.metadata:
        bounds = ((phrase, getattr(constraint, name, None)) for name, phrase in CONSTRAINTS.items())
        words += [phrase.format(bound) for phrase, bound in bounds if bound is not None]
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
