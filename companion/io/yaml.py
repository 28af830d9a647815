"""Reading what people write by hand: text and YAML, with a sentence for whatever is wrong with it."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from companion.io.errors import UserError

# How many values a file may hold once its aliases are written out: nine lines of aliases of aliases are 10^9.
MOST_VALUES = 100_000


def read_text(path: Path) -> str:
    """The text of `path`, or a `UserError` that says why there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8, from byte {error.start} on. Save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Restore it.") from error


def read_yaml(path: Path) -> Any:
    """What the YAML file `path` holds, None if nothing."""
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, origin: str) -> Any:
    """What `text` says, read as YAML 1.2, so that `1e-3` is a number; `origin` is where it stands."""
    return copy.deepcopy(_parsed(text, origin))  # whoever asks may change what it gets


@cache
def _parsed(text: str, origin: str) -> Any:
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{origin}, line {mark.line + 1}" if mark else origin
        raise UserError(f"{place}: not YAML, {error.problem or error.context}.") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{origin}: not YAML, {error}.") from error
    _require_few(content, origin)
    return content


def _require_few(content: Any, origin: str) -> None:
    """Refuse aliases nested so that writing them out would take forever, or never end."""
    pending, found = [content], 0
    while pending:
        value = pending.pop()
        found += 1
        if found + len(pending) > MOST_VALUES:
            raise UserError(
                f"{origin} holds more than {MOST_VALUES:,} values once its aliases (`*name`) are written out. Write "
                "plain values instead."
            )
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | set):
            pending += value
