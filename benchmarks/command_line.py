"""How soon the command line answers: a mistyped parameter, the list of figures, a build with nothing to do.

Seconds of whole processes, the median of several, beside a Python that starts and imports NumPy, in the same run. A
mistake must be told before anything slow is imported, so it is also said whether JAX was.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = 7
MAIN = "import sys; from companion.__main__ import main; sys.argv = ['companion', *sys.argv[1:]]; main()"
COMMANDS = {
    "python, import numpy": ["-c", "import numpy"],
    "companion run NAME -p typo=1": ["-c", MAIN, "run", "gaussian_limit", "-p", "typo=1"],
    "companion run NAME -p seed=-1": ["-c", MAIN, "run", "gaussian_limit", "-p", "seed=-1"],
    "companion list": ["-c", MAIN, "list"],
}


def seconds(arguments: list[str]) -> float:
    """The median over runs, after one that is not counted."""
    times = []
    for _ in range(RUNS + 1):
        clock = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False)
        times.append(time.perf_counter() - clock)
    return statistics.median(times[1:])


def imports_jax(arguments: list[str]) -> bool:
    """Whether the command imported JAX before it answered."""
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return any(line.split("|")[-1].strip() == "jax" for line in finished.stderr.splitlines())


def main() -> None:
    """Print a row a command."""
    measured = {name: seconds(arguments) for name, arguments in COMMANDS.items()}
    peer = measured["python, import numpy"]
    print(f"{'command':32} {'seconds':>8} {'ratio':>6}  JAX imported")
    for name, value in measured.items():
        print(f"{name:32} {value:8.2f} {value / peer:6.1f}  {'yes' if imports_jax(COMMANDS[name]) else 'no'}")


if __name__ == "__main__":
    main()
