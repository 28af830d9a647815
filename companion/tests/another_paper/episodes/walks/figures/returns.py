r"""The share of walkers that are back at the start after $n$ steps falls like $\sqrt{2/(\pi n)}$.

Alt: Log-log plot of the share of returned walkers against the number of steps, points on a falling line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from companion import Column, Numbers, Table
from companion.figures.style import ink
from episodes.walks.paths import Ends


def numbers(ends: Ends) -> Numbers:
    """Return one row per number of steps."""
    shares = [np.mean(these == 0) for these in ends.values()]
    sizes = [len(these) for these in ends.values()]
    table = pd.DataFrame({"steps": list(ends), "share": shares, "law": [np.sqrt(2 / (np.pi * n)) for n in ends]})
    table["std_error"] = [np.sqrt(share * (1 - share) / size) for share, size in zip(shares, sizes, strict=True)]
    columns = {
        "steps": Column("Steps of the walk, n", "steps"),
        "share": Column("Share of walkers at the start", std_error="std_error"),
        "law": Column("√(2/(πn)), the limit"),
        "std_error": Column("Standard error of the share", std_error="std_error"),
    }
    return Numbers(Table(table, columns))


def draw(table: pd.DataFrame) -> Figure:
    """Draw the points and the limit."""
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(table["steps"], table["share"], "o")
    axes.plot(table["steps"], table["law"], color=ink(), linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="steps $n$", ylabel="share back at the start")
    return figure
