"""The book's chapters, a folder a notebook: parameters, what its figures share, and one file a figure."""


def float64() -> None:
    """What every computation of this book runs in; `begin` calls it."""
    import jax

    jax.config.update("jax_enable_x64", True)


def device() -> str:
    """What computes, in words."""
    import jax

    return f"{jax.default_backend()}: {jax.devices()[0].device_kind}"
