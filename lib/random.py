"""Random keys by name, so that a new use of randomness changes no other."""

import hashlib

import jax.random as jr
from jaxtyping import Array, Int, PRNGKeyArray

from lib._checks import public

__all__ = ["named_keys"]


@public
def named_keys(seed: int | Int[Array, ""], *names: str) -> dict[str, PRNGKeyArray]:
    """Return one random key per name.

    A key depends on the seed and its own name only: adding, removing or reordering names changes no other key.

    Args:
      seed: the seed, an integer of shape ().
      names: the names, which must differ.

    Returns:
      The keys by name, in the order of `names`.

    Raises:
      TypeError: if a name is not a string.
      ValueError: if a name occurs twice.

    Source: `jax.random.fold_in`.

    Transformations: jit, vmap.
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`named_keys(seed, *names)` takes names that are strings. Got {name!r}.")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            "`named_keys(seed, *names)` needs different names, because equal names would share their randomness. "
            f"Got twice: {', '.join(map(repr, repeated))}."
        )
    key = jr.key(seed)
    return {name: _fold_in_name(key, name) for name in names}


def _fold_in_name(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Fold the first 64 bits of the name's SHA-256 digest into a key, in two words of 32 bits."""
    digest = hashlib.sha256(name.encode()).digest()
    for start in (0, 4):
        key = jr.fold_in(key, int.from_bytes(digest[start : start + 4], "big"))
    return key
