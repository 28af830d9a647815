"""Each formula is parsed once, and looks the same as without the cache."""

import subprocess
import sys

SCRIPT = r"""
import io, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib import _mathtext
from companion.figures import mathtext_cache

parsed, parse = [], _mathtext.Parser.parse
def counted(self, formula, *arguments):
    parsed.append(formula)
    return parse(self, formula, *arguments)
_mathtext.Parser.parse = counted

def files():
    figure, axes = plt.subplots(layout="constrained")
    axes.set(xscale="log", xlim=(1, 1e9), xlabel="$\sqrt{2\ln L}$")
    contents = []
    for kind in ("svg", "png", "svg"):
        content = io.BytesIO()
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else {}, bbox_inches="tight")
        contents.append(content.getvalue())
    plt.close(figure)
    return contents

plt.rcParams["svg.hashsalt"] = "the same"
plain, before = files(), len(parsed)
mathtext_cache.parse_once()
mathtext_cache.parse_once()
first = files()
between = len(parsed)
assert first == files() == plain
print(before, between - before, len(parsed) - between)
"""


def test_formulas_are_parsed_once_and_look_the_same():
    """A separate process, whose matplotlib is patched, draws three files of a figure twice."""
    finished = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    without_cache, first, second = map(int, finished.stdout.split())
    assert second == 0
    assert 0 < first < 0.7 * without_cache
