"""Read text and YAML files that people write by hand; errors name the file and the line."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from companion.io.errors import UserError


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises:
      UserError: if the file cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8, from byte {error.start} on. Save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Restore it.") from error


def read_yaml(path: Path) -> Any:
    """Return the content of the YAML file `path`, None if it is empty."""
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, origin: str) -> Any:
    """Return the content of `text` read as YAML 1.2, in which `1e-3` is a number; `origin` names it in errors."""
    return pickle.loads(_parsed(text, origin))  # callers may change the result


@cache
def _parsed(text: str, origin: str) -> bytes:
    """Return the pickled content of a text, because unpickling is faster than a deep copy."""
    try:
        return pickle.dumps(YAML(typ="safe", pure=True).load(text))
    except (YAMLError, ValueError) as error:
        mark, problem = (getattr(error, part, None) for part in ("problem_mark", "problem"))
        location = f"{origin}, line {mark.line + 1}" if mark else origin
        raise UserError(f"{location}: not YAML, {problem or error}.") from error
