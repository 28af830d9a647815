"""Parameters of the notebook `laboratory`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion


def odd(nodes: int) -> int:
    """Check that both ends are among every second node: tables of these nodes are compared with the whole table."""
    if nodes % 2 == 0:
        raise ValueError(f"must be odd, so that every second node includes both ends of the axis. Got {nodes}")
    return nodes


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[companion.Seed, Field(description="Seed of the random settings at which the tables are tested.")]
    plane_nodes: Annotated[int, Field(ge=16, le=80, description="Nodes on each of the two axes of the plane.")]
    needle_nodes: Annotated[
        int, Field(ge=8, le=48, description="Nodes on each axis of the table of single-location regression.")
    ]
    settings: Annotated[
        int, Field(ge=20, le=5000, description="Random settings at which each table is compared with the library.")
    ]
    valley_lengths: Annotated[
        int, Field(ge=6, le=24, description="Prompt lengths in the table of in-context regression.")
    ]
    valley_tilts: Annotated[
        int, Field(ge=6, le=32, description="Sizes $u$ of the head in the table of in-context regression.")
    ]
    tested_lengths: Annotated[
        int, Field(ge=2, le=50, description="Random lengths at which the table of in-context regression is tested.")
    ]
    heads: Annotated[
        int, Field(ge=20, le=1000, description="Random heads at each of these lengths, and random pairs of heads.")
    ]
    pair_nodes: Annotated[
        list[Annotated[int, Field(ge=3, le=41), AfterValidator(odd)]],
        Field(
            min_length=3,
            max_length=3,
            description="Nodes of the table of pairs by the length, the size and the product of the keys: odd numbers.",
        ),
    ]
