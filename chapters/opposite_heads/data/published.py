"""Write the losses that the code of [He25] prints, as read in its outputs.

    python -m chapters.opposite_heads.data.published

makes `published_losses` in seconds. The numbers were copied from the outputs of `plots.ipynb` of the repository
XintianPan/ICL_linear, read at commit 87ed34f; the notebook was last changed at commit 52eaa30. No run is computed.
"""

import pandas as pd

from companion import Column, Table
from companion.authoring.datasets import Result, make

LENGTHS = tuple(range(10, 101, 5))
# The second cell of the notebook prints four losses per length, each a mean over 50,000 prompts, with these names.
FORMULAS, FORMULA_PROMPTS = {"pair": "loss", "descent": "gd", "debiased": "dgd", "head": "kernel"}, 50_000
PRINTED = {
    "pair": (
        "0.603917 0.448605 0.367479 0.317075 0.286436 0.261810 0.243044 0.227718 0.218275 0.205474 0.199675 0.195446 "
        "0.187323 0.180963 0.175948 0.174264 0.170440 0.168165 0.163756"
    ),
    "descent": (
        "0.643426 0.461101 0.370890 0.318029 0.284911 0.259281 0.240750 0.225371 0.215995 0.203199 0.197617 0.193198 "
        "0.185505 0.179046 0.174018 0.172289 0.168689 0.166395 0.162162"
    ),
    "debiased": (
        "0.613978 0.453196 0.369242 0.318031 0.286716 0.261825 0.243052 0.227633 0.218202 0.205324 0.199319 0.195174 "
        "0.187143 0.180673 0.175652 0.174081 0.170220 0.167877 0.163495"
    ),
    "head": (
        "0.875398 0.691117 0.585854 0.520433 0.471126 0.431864 0.404846 0.389261 0.372072 0.348729 0.338923 0.333975 "
        "0.319063 0.310904 0.301579 0.301907 0.292873 0.286513 0.284418"
    ),
}
# The fifth cell prints the losses of trained models with 1, 2, 4 and 8 heads, which the next cell draws. Their means
# are over 100,000 prompts for one head and over 20,000 for several heads.
TRAINED_PROMPTS = {1: 100_000, 2: 20_000, 4: 20_000, 8: 20_000}
DRAWN = {
    1: (
        "0.946854 0.774700 0.674426 0.607962 0.565347 0.529074 0.506021 0.483062 0.462816 0.449499 0.437547 0.426115 "
        "0.419044 0.409831 0.404656 0.394005 0.386197 0.383083 0.380883"
    ),
    2: (
        "0.679073 0.538887 0.465592 0.422528 0.381160 0.358149 0.340983 0.329499 0.318132 0.308961 0.302407 0.289799 "
        "0.287840 0.283854 0.281917 0.280158 0.270823 0.269206 0.268494"
    ),
    4: (
        "0.672683 0.548449 0.463651 0.411482 0.380270 0.361519 0.344807 0.329905 0.318007 0.309232 0.300791 0.300709 "
        "0.293097 0.287122 0.280455 0.278517 0.274703 0.272020 0.269659"
    ),
    8: (
        "0.684292 0.536470 0.473883 0.412177 0.384417 0.364597 0.335703 0.333505 0.319900 0.313983 0.301614 0.299399 "
        "0.287224 0.286289 0.280263 0.279818 0.273028 0.269650 0.268402"
    ),
}
COLUMNS = {
    "predictor": Column(
        "`pair`, `head`, `descent` and `debiased`: two heads, one head, one step of gradient descent and of debiased "
        "gradient descent with the published parameters; `trained`: a trained model",
        "name",
    ),
    "heads": Column("Number of softmax heads; 0 for gradient descent"),
    "length": Column("Tokens in the prompt, L", "tokens"),
    "loss": Column("Loss as printed"),
    "prompts": Column("Simulated prompts behind the printed loss"),
}
HEADS = {"pair": 2, "descent": 0, "debiased": 0, "head": 1}


def published_losses() -> Result:
    """Return the printed losses, one row per predictor and length."""
    blocks = [(name, HEADS[name], PRINTED[name], FORMULA_PROMPTS) for name in FORMULAS]
    blocks += [("trained", heads, DRAWN[heads], TRAINED_PROMPTS[heads]) for heads in DRAWN]
    frames = [
        pd.DataFrame(
            {
                "predictor": name,
                "heads": heads,
                "length": LENGTHS,
                "loss": [float(text) for text in printed.split()],
                "prompts": prompts,
            }
        )
        for name, heads, printed, prompts in blocks
    ]
    parameters = {
        "source": "[He25], github.com/XintianPan/ICL_linear, plots.ipynb at 52eaa30, outputs of the cells 2 and 5",
        "dimension": 5,
        "noise_variance": 0.1,
        "pair": {"key": 0.13, "value": 3.45},
        "trained_head": {"key": 0.5177, "value": 1.5523},
        "trained_length": 40,
        "printed_as": FORMULAS,
    }
    return Result(Table(pd.concat(frames, ignore_index=True), COLUMNS), parameters)


if __name__ == "__main__":
    make(__file__, __doc__, {"published_losses": published_losses})
