"""The script that computes under several roundings sets them, and lists what moves by a tenth of a tolerance."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from companion.figures import store
from companion.project.paths import Build, Project

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import roundings  # noqa: E402

NOTEBOOK, FIGURE, COLUMN = "temperature_and_length", "three_scalings", "typical"


def test_a_processor_lacks_what_came_after_it():
    dispatched = ("X86_V3", "X86_V4", "AVX512_ICL")
    lacking = {
        name: roundings.environment(name, dispatched).get("NPY_DISABLE_CPU_FEATURES") for name in ("avx2", "own")
    }
    assert lacking == {"avx2": "X86_V4 AVX512_ICL", "own": None}
    assert roundings.environment("sse4.2", dispatched)["NPY_DISABLE_CPU_FEATURES"] == "X86_V3 X86_V4 AVX512_ICL"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86-64 processors")
@pytest.mark.parametrize("rounding", [name for name, processor in roundings.PROCESSORS.items() if processor])
def test_xla_and_numpy_know_the_names(rounding):
    """An unknown flag ends the process, and NumPy warns of an unknown feature or one that it cannot do without."""
    code = "import jax, numpy; print(jax.numpy.ones(2) @ jax.numpy.ones(2))"
    command = [sys.executable, "-W", "error::ImportWarning", "-W", "error::RuntimeWarning", "-c", code]
    finished = subprocess.run(command, env=roundings.environment(rounding), capture_output=True, text=True, check=False)
    assert finished.stdout == "2.0\n", finished.stderr


@pytest.mark.parametrize(("relative", "found"), [(1e-8, []), (3e-6, [COLUMN])])
def test_a_column_with_too_few_digits_is_listed(tmp_path, relative, found):
    builds = [Build(tmp_path / name, tmp_path) for name in ("old", "new")]
    for build, factor in zip(builds, (1.0, 1.0 + relative), strict=True):
        shutil.copytree(Project(ROOT).published / NOTEBOOK, build.figures / NOTEBOOK)
        table = build.figures / NOTEBOOK / f"{FIGURE}{store.DATA}"
        frame = pd.read_csv(table)
        frame.loc[3, COLUMN] *= factor
        (build.tables / NOTEBOOK).mkdir(parents=True)
        for figure in store.names_in(build.figures / NOTEBOOK):
            shutil.copy(build.figures / NOTEBOOK / f"{figure}{store.DATA}", build.tables / NOTEBOOK)
        frame.to_csv(build.tables / NOTEBOOK / table.name, index=False)
    listed = [(figure, difference.what) for figure, difference in roundings.differences(*builds, NOTEBOOK)]
    assert listed == [(FIGURE, f"{name}, row 4") for name in found]
