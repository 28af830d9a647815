"""Run notebooks with one parameter changed at random, and report crashes and claims that fail.

Each setting changes one parameter of one notebook to a random value in its documented range; the other parameters are
those of the profile `smoke`. A run may refuse its parameters in a sentence. It may not end in a traceback, and a claim
that fails needs an explanation: the statement is wrong there, or the range is too wide, or the tolerance is.

A run that takes too long or needs too much memory is stopped and reported, but it is not a failure. The runs are custom
runs in `_build/runs/`. After an interruption the same command runs only the settings without a result.

Example:

    python tools/fuzz_parameters.py --seed 1 --settings 50
"""

import argparse
import json
import math
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from companion.build import cache_keys  # noqa: E402
from companion.build.run_spec import CheckedRun, RunSpec  # noqa: E402
from companion.figures import store  # noqa: E402
from companion.io.errors import UserError  # noqa: E402
from companion.project import parameters  # noqa: E402
from companion.project.notebooks import Notebook  # noqa: E402
from companion.project.paths import Project  # noqa: E402
from companion.runs.run_custom import COMPLETE  # noqa: E402
from companion.runs.sweep import arguments  # noqa: E402

PROFILE = "smoke"
# A parameter without a largest value is drawn up to this multiple of its value in the profile.
UNBOUNDED = 10
# The probability of an end of the range, where faults are frequent.
ENDS = 0.2
# Draws of a value before a parameter is given up, because rules about several parameters refuse them.
DRAWS = 100
SECONDS_TO_STOP = 30
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "MemoryError", "bad_alloc", "run out of memory")
# A shell that limits the memory of the command after it, in kilobytes.
LIMITED = ("sh", "-c", 'ulimit -v "$0" && exec "$@"')


@dataclass(frozen=True)
class Result:
    """How a run ended: `ok`, `refused`, `large`, `claims` (some fail) or `crash`, with a sentence."""

    spec: RunSpec
    kind: str
    text: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether somebody must look at it."""
        return self.kind in ("claims", "crash")

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={json.dumps(value)}" for name, value in self.spec.parameters.items())
        return " | ".join(("", self.spec.notebook, changed, self.kind, self.text.replace("\n", " "), "")).strip()


def settings(project: Project, seed: int, number: int) -> list[RunSpec]:
    """Return random settings: every parameter of every notebook is equally probable."""
    rng = np.random.default_rng(seed)
    schemas = {name: parameters.parameters_of(project, name).model_json_schema() for name in project.notebooks()}
    places = [(name, parameter) for name, schema in schemas.items() for parameter in schema["properties"]]
    drawn = []
    while len(drawn) < number:
        name, parameter = places[rng.integers(len(places))]
        notebook = Notebook.named(project, name)
        values = parameters.resolve(project, notebook, PROFILE)
        for _ in range(DRAWS):
            value = draw(rng, schemas[name]["properties"][parameter], values[parameter])
            if value != values[parameter] and _is_allowed(project, notebook, {**values, parameter: value}):
                drawn.append(RunSpec(name, PROFILE, {parameter: value}))
                break
    return drawn


def draw(rng: np.random.Generator, schema: dict[str, Any], usual: Any) -> Any:
    """Return a random value that the JSON schema of a parameter allows; `usual` gives the scale if it has no end.

    Numbers whose range spans more than a factor of thirty are uniform in their logarithm.
    """
    match schema:
        case {"enum": choices}:
            return choices[rng.integers(len(choices))]
        case {"type": "boolean"}:
            return bool(rng.integers(2))
        case {"type": "array", "items": items}:
            typical = max(usual) if usual else 1
            least, most = schema.get("minItems", 1), schema.get("maxItems", max(len(usual), 1) + 2)
            return [draw(rng, items, typical) for _ in range(rng.integers(least, most + 1))]
        case {"type": "integer" | "number" as kind}:
            low, high = _range(schema, usual)
            if rng.random() < ENDS:
                value = (low, high)[rng.integers(2)]
            elif low > 0 and high / low > 30:
                value = math.exp(rng.uniform(math.log(low), math.log(high)))
            else:
                value = rng.uniform(low, high)
            return round(value) if kind == "integer" else float(f"{value:.4g}")
    raise UserError(f"{Path(__file__).name} cannot draw a value of {schema}. Add its type to `draw`.")


def _range(schema: dict[str, Any], usual: float) -> tuple[float, float]:
    least, most = -math.inf, math.inf
    for name, value in schema.items():
        match name:
            case "minimum":
                least = value
            case "exclusiveMinimum":
                least = value + (1 if schema["type"] == "integer" else 1e-3 * (abs(value) or 1))
            case "maximum":
                most = value
            case "exclusiveMaximum":
                most = value - (1 if schema["type"] == "integer" else 1e-3 * (abs(value) or 1))
    scale = UNBOUNDED * max(abs(usual), 1)
    return (least if least > -math.inf else -scale), (most if most < math.inf else max(least, 0) + scale)


def _is_allowed(project: Project, notebook: Notebook, values: dict[str, Any]) -> bool:
    try:
        parameters.check(project, notebook, values)
    except UserError:
        return False
    return True


def run(project: Project, spec: RunSpec, limit: float, gibibytes: float) -> Result:
    """Run one setting in a separate process, with limited time (in seconds) and memory."""
    checked = spec.check(project)
    if cache_keys.intact(project, cache_keys.custom_stamp(project, checked)):
        return _judged(project, checked)
    with subprocess.Popen(
        [*LIMITED, str(int(gibibytes * 2**20)), sys.executable, "-m", "companion", "run", *arguments(spec)],
        cwd=project.root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()
            return Result(spec, "large", f"stopped after {limit:.0f} s")
    if process.returncode in COMPLETE:
        return _judged(project, checked)
    if any(word in said for word in OUT_OF_MEMORY):
        return Result(spec, "large", f"needs more than {gibibytes:g} GiB")
    if "Traceback" in said:
        return Result(spec, "crash", said.strip().splitlines()[-1])
    return Result(spec, "refused" if process.returncode == 2 else "crash", said.strip())


def _judged(project: Project, run: CheckedRun) -> Result:
    """Return the result of a complete run: the claims that fail, if there are any, else those that are withheld."""
    folder = run.build(project).figures / run.spec.notebook
    records = store.records_in(folder)
    claims = [claim for record in records for claim in record.claims]
    withheld = [claim.id for record in records for claim in record.withheld]
    broken = [
        f"{claim.id}: {claim.measured:.4g} {claim.relation} {claim.expected:.4g} ± {claim.tolerance:.2g}"
        for claim in claims
        if claim.is_broken
    ]
    if broken:
        return Result(run.spec, "claims", "; ".join(broken))
    return Result(run.spec, "ok", f"not claimed: {', '.join(withheld)}" if withheld else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the settings and print one line for each."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("Example:")[0],
        epilog="Example: python tools/fuzz_parameters.py --seed 1 --settings 50",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, required=True, help="seed of the settings")
    parser.add_argument("--settings", type=int, default=50, help="number of settings (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one run (default: %(default)s)")
    parser.add_argument(
        "--memory", type=float, default=10, help="GiB of address space for one run (default: %(default)s)"
    )
    parser.add_argument("--cores", type=int, default=2, help="runs at the same time (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only print the settings")
    given = parser.parse_args(arguments)
    project = Project(ROOT)
    drawn = settings(project, given.seed, given.settings)
    if given.list:
        print("\n".join(f"{spec.notebook} {json.dumps(dict(spec.parameters))}" for spec in drawn))
        return 0
    failures = 0
    with ThreadPoolExecutor(given.cores) as pool:
        for index, result in enumerate(pool.map(lambda spec: run(project, spec, given.limit, given.memory), drawn), 1):
            print(f"{index}/{len(drawn)} {result}", flush=True)
            failures += result.is_failure
    print(f"{failures} of {len(drawn)} settings need an explanation.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
