"""Compute notebooks under several roundings, and list the numbers that differ by more than a tenth of their tolerance.

The roundings are those of x86-64 processors. `own` uses every instruction of this one; the others leave out wide
vectors, and `sse4.2` also fused multiplication and addition, in XLA, NumPy and OpenBLAS. A number that moves by more
than a tenth of its publication tolerance has fewer true digits than its column declares. Results are in
`_build/roundings/`, in one copy of the book per rounding, because a build takes results of any processor for its own.

Example:

    python tools/roundings.py temperature_and_length mixtures --roundings own sse4.2
"""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from chapters import QUICK  # noqa: E402
from companion.build.run_spec import RunSpec  # noqa: E402
from companion.figures import comparison, store  # noqa: E402
from companion.figures.comparison import Difference  # noqa: E402
from companion.project.paths import Build, Project  # noqa: E402
from companion.runs.verify import Verification  # noqa: E402

# Part of a tolerance by which a column may move.
ALLOWED = 0.1
# By rounding: XLA's name of its instructions, a part of the names of NumPy's features that it lacks, OpenBLAS's kernel.
PROCESSORS = {"own": None, "avx2": ("AVX2", ("AVX512", "V4"), "Haswell"), "sse4.2": ("SSE4_2", ("",), "Nehalem")}
# The features of this processor that NumPy can do without.
DISPATCHED = tuple(name for name in __cpu_dispatch__ if __cpu_features__[name])


def environment(rounding: str, dispatched: Sequence[str] = DISPATCHED) -> dict[str, str]:
    """Return the environment variables of a rounding; `dispatched` are the features that NumPy uses by choice."""
    if (processor := PROCESSORS[rounding]) is None:
        return {}
    instructions, lacking, kernel = processor
    return {
        "XLA_FLAGS": f"{QUICK} --xla_cpu_max_isa={instructions}",
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in dispatched if any(part in name for part in lacking)),
        "OPENBLAS_CORETYPE": kernel,
    }


def compute(project: Project, names: Sequence[str], rounding: str, cores: int) -> Path:
    """Run notebooks in a new copy of the book; return the folder of the copy."""
    verification = Verification.of(project.published)
    copy, kept = verification.lay_out(), project.generated / "roundings" / rounding
    before = dict(os.environ)
    os.environ.update(environment(rounding))
    try:
        for name, failure in verification.run(names, cores, lambda name: print(f"{rounding}: {name}", flush=True)):
            if failure:
                raise SystemExit(f"{name} could not be run under {rounding}. {failure}")
    finally:
        os.environ.clear()
        os.environ.update(before)
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    return copy.root.rename(kept)


def differences(old: Build, new: Build, name: str) -> Iterator[tuple[str, Difference]]:
    """Yield what differs by more than allowed in a notebook's tables and claims, after the name of the figure."""
    for figure in store.names_in(new.figures / name):
        old_record, new_record = (store.read_record(build.figures / name, figure) for build in (old, new))
        tables = [build.tables / name / f"{figure}{store.DATA}" for build in (old, new)]
        compared = comparison.compare(old_record, new_record, (tables[0], tables[1]))
        yield from ((figure, difference) for difference in compared.all() if difference.by > ALLOWED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute, compare each pair of roundings, and print one line for each number that differs."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] [NOTEBOOK...]",
    )
    parser.add_argument("notebooks", nargs="*", metavar="NOTEBOOK", help="notebooks to compute (default: all)")
    parser.add_argument("--day", type=int, help="instead: the notebook whose turn it is on this day of the year")
    parser.add_argument("--roundings", nargs="+", choices=PROCESSORS, default=[*PROCESSORS], help="default: all")
    parser.add_argument("--cores", type=int, default=2, help="notebooks at the same time (default: %(default)s)")
    given = parser.parse_args(arguments)
    if platform.machine().lower() not in ("x86_64", "amd64"):
        parser.error(f"these roundings are those of x86-64 processors, and this is {platform.machine()}")
    project = Project(ROOT)
    every = project.notebooks()
    names = [every[given.day % len(every)]] if given.day is not None else given.notebooks or every
    if unknown := sorted(set(names) - set(every)):
        parser.error(f"there is no notebook {', '.join(unknown)}")
    runs = {name: RunSpec(name, isolated=True).check(project) for name in names}
    builds = {}
    for rounding in given.roundings:
        copy = Project(compute(project, names, rounding, given.cores))
        builds[rounding] = {name: run.build(copy) for name, run in runs.items()}
    count = 0
    for old, new in combinations(builds, 2):
        for name in names:
            for figure, difference in differences(builds[old][name], builds[new][name], name):
                count += 1
                values = f"{difference.by:.2g} tolerances, {difference.old} and {difference.new}"
                print(f"{old} and {new}: {name}/{figure}, {difference.what}: {values}")
    print(f"{count} numbers differ by more than {ALLOWED:g} of their tolerance.")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
