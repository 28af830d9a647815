"""The publishing machine: parameters checked, notebooks run, figures published with their data and claims."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from companion.publishing import publish as publish


def __getattr__(name: str):
    # drawing brings JAX and matplotlib along, for which `companion list` should not have to wait
    if name == "publish":
        from companion.publishing import publish

        return publish
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
