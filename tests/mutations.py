"""Changes of a line that some test must notice: `.venv/bin/python tests/mutations.py [NAME]...`.

Works on what is committed, in a temporary clone: the tests named here must pass there as it is, and then, with one
change after another, fail. Where a line cannot matter, it is said why, and its tests must pass. All take half an hour;
the exit code is 0 if everything was as it must be, 1 if a change was not noticed, 2 if nothing can be said. Pytest does
not run this: `tests/test_mutations.py` checks that every line is still there.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In the place of a lock.
NO_LOCK = 'with __import__("contextlib").nullcontext():'


@dataclass(frozen=True)
class Mutation:
    """In `file`, `new` in the place of `old`: one of `tests` must fail, or pass if `equal` says why it is the same."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equal: str = ""

    def faults(self, root: Path) -> list[str]:
        """What is wrong with it in this checkout, a sentence each."""
        path, found = root / self.file, []
        count = path.read_text(encoding="utf-8").count(self.old) if path.is_file() else 0
        if count != 1:
            found.append(f"{self.name}: {self.old!r} stands {count} times in {self.file}, and must stand once.")
        for test in self.tests:
            file, _, function = test.partition("::")
            text = (root / file).read_text(encoding="utf-8") if (root / file).is_file() else ""
            if f"\ndef {function.partition('[')[0]}(" not in text:
                found.append(f"{self.name}: there is no {test}.")
        return found

    def apply(self, root: Path) -> str:
        """Change the file; what it was."""
        path = root / self.file
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(self.old, self.new), encoding="utf-8")
        return before


MUTATIONS = (
    # --- numbers --------------------------------------------------------------------------------------------------
    Mutation(
        "quadrature-factor",
        "lib/finite_prompt.py",
        "2 * change + ROUNDING",
        "change + ROUNDING",
        ("tests/lib/test_finite_prompt.py::test_reported_error_is_twice_what_a_finer_step_changes",),
    ),
    Mutation(
        "episodes-with-one-key",
        "chapters/trajectory_stability/trajectories.py",
        "programs.episodes(keys_at(key, np.arange(plan.episodes)))",
        "programs.episodes(keys_at(key, np.zeros(plan.episodes, int)))",
        ("tests/chapters/test_trajectory_stability.py::test_every_episode_has_a_key_of_its_own",),
    ),
    Mutation(
        "prompts-with-one-key",
        "chapters/trajectory_stability/trajectories.py",
        "keys_at(jr.fold_in(key, step), np.arange(plan.episodes))",
        "keys_at(jr.fold_in(key, step), np.zeros(plan.episodes, int))",
        ("tests/chapters/test_trajectory_stability.py::test_every_prompt_of_a_step_has_a_key_of_its_own",),
    ),
    Mutation(
        "steps-with-one-key",
        "chapters/trajectory_stability/trajectories.py",
        "keys_at(jr.fold_in(key, step), np.arange(plan.episodes))",
        "keys_at(key, np.arange(plan.episodes))",
        ("tests/chapters/test_trajectory_stability.py::test_every_prompt_of_a_step_has_a_key_of_its_own",),
    ),
    Mutation(
        "collapsed-own-sign",
        "lib/icl/training.py",
        "+ own * xi2",
        "- own * xi2",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
        equal="ξ₂ is normal and enters nowhere else, so that with either sign the law of the gradient is the same",
    ),
    Mutation(
        "collapsed-own-dropped",
        "lib/icl/training.py",
        " + own * xi2",
        "",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
    ),
    Mutation(
        "collapsed-shared-sign",
        "lib/icl/training.py",
        "+ shared * xi1",
        "- shared * xi1",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
    ),
    Mutation(
        "batches-own-sign",
        "lib/icl/batches.py",
        "2 * along * rho * q12",
        "-2 * along * rho * q12",
        ("tests/lib/test_icl_batches.py::test_batches_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "batches-own-dropped",
        "lib/icl/batches.py",
        " + own * xi2)",
        ")",
        ("tests/lib/test_icl_batches.py::test_batches_in_more_dimensions_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "batches-shared-sign",
        "lib/icl/batches.py",
        "+ shared * xi1 +",
        "- shared * xi1 +",
        ("tests/lib/test_icl_batches.py::test_batches_in_more_dimensions_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "replica-tolerance",
        "lib/single_location/replica.py",
        "RESIDUAL_TOLERANCE, LARGEST_STEPS = 1e-5, 200",
        "RESIDUAL_TOLERANCE, LARGEST_STEPS = 1e-4, 200",
        ("tests/lib/test_replica.py::test_what_has_converged_is_a_fixed_point",),
    ),
    Mutation(
        "replica-error-freedom",
        "lib/single_location/replica.py",
        "jnp.std(leaf, axis=0, ddof=1)",
        "jnp.std(leaf, axis=0)",
        ("tests/lib/test_replica.py::test_errors_are_standard_errors_of_the_mean",),
    ),
    Mutation(
        "bayes-optimal-found",
        "lib/single_location/bayes_optimal.py",
        "self.strength**2 * hidden_weight,",
        "self.strength**2 * hidden_weight**2,",
        ("tests/lib/test_bayes_optimal.py::test_few_prompts_by_an_evolution_of_other_averages",),
    ),
    Mutation(
        "affine-slope-sign",
        "lib/single_location/activations.py",
        "return 1.0 - explained, (mixture.length * mean - total)",
        "return 1.0 - explained, (total - mixture.length * mean)",
        ("tests/lib/test_single_location.py::test_the_affine_fit_has_its_least_risk_at_its_own_slope",),
    ),
    Mutation(
        "start-told-by-its-first-head",
        "chapters/published_experiment/places.py",
        "zip(paths.points[:, -1], ",
        "zip(paths.points[:, 0], ",
        ("tests/chapters/test_published_experiment.py::test_a_start_is_where_its_head_and_its_mean_square_are",),
    ),
    Mutation(
        "start-told-by-its-first-risk",
        "chapters/published_experiment/places.py",
        "paths.risks[:, -1], strict=True",
        "paths.risks[:, 0], strict=True",
        ("tests/chapters/test_published_experiment.py::test_a_start_is_where_its_head_and_its_mean_square_are",),
    ),
    Mutation(
        "spectrum-of-another-dimension",
        "chapters/sharp_rates/figures/operator_norm.py",
        "errors.slope(density, len(values))",
        "errors.slope(density, 1)",
        ("tests/chapters/test_sharp_rates.py::test_slopes_are_those_of_outputs_of_that_dimension",),
    ),
    Mutation(
        "local-slopes-of-another-dimension",
        "chapters/sharp_rates/figures/local_slopes.py",
        "np.sqrt(squared), 1), 1)",
        "np.sqrt(squared), 1), 2)",
        ("tests/chapters/test_sharp_rates.py::test_heads_of_one_coordinate_have_the_slopes_of_one_dimension",),
    ),
    Mutation(
        "exponents-of-another-dimension",
        "chapters/sharp_rates/figures/exponent_laws.py",
        "np.sqrt(h), 1), 1)",
        "np.sqrt(h), 1), 2)",
        ("tests/chapters/test_sharp_rates.py::test_heads_of_one_coordinate_have_the_slopes_of_one_dimension",),
    ),
    Mutation(
        "golden-exponent-of-another-dimension",
        "chapters/sharp_rates/figures/exponent_laws.py",
        "radial_density(errors.taus, 1.0, 1), 1)",
        "radial_density(errors.taus, 1.0, 1), 2)",
        ("tests/chapters/test_sharp_rates.py::test_heads_of_one_coordinate_have_the_slopes_of_one_dimension",),
    ),
    Mutation(
        "bounded-slopes-of-another-dimension",
        "chapters/sharp_rates/bounded_averages.py",
        "errors.slope(density, 1)",
        "errors.slope(density, 2)",
        ("tests/chapters/test_sharp_rates.py::test_slopes_of_bounded_queries_are_those_of_outputs_of_one_dimension",),
    ),
    Mutation(
        "price-at-another-gain",
        "chapters/risk_and_parameters/heads.py",
        "norm / dimension**0.5, gain, float(np.exp(search.fun))",
        "norm / dimension**0.5, dimension**0.5 / norm, float(np.exp(search.fun))",
        ("tests/chapters/test_risk_and_parameters.py::test_a_price_is_that_of_the_head_it_is_told_with",),
    ),
    Mutation(
        "price-on-the-valley",
        "chapters/risk_and_parameters/heads.py",
        "isotropic_blocks(dimension, norm, gain)",
        "isotropic_blocks(dimension, norm, dimension**0.5 / norm)",
        ("tests/chapters/test_risk_and_parameters.py::test_a_price_is_that_of_the_head_it_is_told_with",),
    ),
    Mutation(
        "risk-at-the-gain-nearby",
        "lib/icl/blocks.py",
        "risk_near - slope**2 / (2 * curvature)",
        "risk_near",
        ("tests/lib/test_icl.py::test_best_gain_is_the_least_over_gains",),
    ),
    Mutation(
        "one-head-at-the-gain-of-infinite-prompts",
        "chapters/risk_and_parameters/opposite_heads.py",
        "gains = (answers @ self.targets) / np.sum(answers**2, axis=1)",
        "gains = 1 / self.tilts",
        ("tests/chapters/test_risk_and_parameters.py::test_one_head_is_compared_at_its_best_gain",),
    ),
    Mutation(
        "one-head-near-another-gain",
        "chapters/risk_and_parameters/opposite_heads.py",
        "near=1 / tilt",
        "near=1.1 / tilt",
        ("tests/chapters/test_risk_and_parameters.py::test_one_head_is_compared_at_its_best_gain",),
        equal="the risk is quadratic in the gain, so that its minimum is told from anywhere near it",
    ),
    Mutation(
        "least-noise-of-prompts",
        "chapters/trajectory_stability/envelope.py",
        "_root_mean_square(gaps).max(axis=0)",
        "_root_mean_square(gaps).min(axis=0)",
        ("tests/chapters/test_trajectory_stability.py::test_the_noise_of_prompts_is_that_of_the_worst_time",),
    ),
    # --- the publishing machine -----------------------------------------------------------------------------------
    Mutation(
        "checkpoint-without-fsync",
        "companion/authoring/checkpoints.py",
        "os.fsync(file.fileno())",
        "pass",
        ("tests/companion/test_checkpoints.py::test_a_checkpoint_reaches_the_disk_before_its_name",),
    ),
    Mutation(
        "publication-without-lock",
        "companion/build/publication_policy.py",
        'with locked(build.locks / f"publish-{name}", f"{name}: waiting for another process to publish it"):',
        NO_LOCK,
        ("tests/companion/test_publication_policy.py::test_publication_waits_for_another",),
    ),
    Mutation(
        "run-without-lock",
        "companion/build/execution.py",
        'with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):',
        NO_LOCK,
        ("tests/companion/test_edited_meanwhile.py::test_parameters_are_those_of_when_the_wait_is_over",),
    ),
    Mutation(
        "drawing-without-lock",
        "companion/build/redraw.py",
        'with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):',
        NO_LOCK,
        ("tests/companion/test_edited_meanwhile.py::test_a_picture_is_that_of_when_the_wait_is_over",),
    ),
    Mutation(
        "build-without-lock",
        "companion/cli/build.py",
        'with atomic.locked(project.generated / ".build.lock", "Waiting for another build to end."):',
        NO_LOCK,
        ("tests/companion/test_edited_meanwhile.py::test_one_build_and_one_verification_at_a_time",),
    ),
    Mutation(
        "verification-without-lock",
        "companion/cli/verify.py",
        'with atomic.locked(home.generated / ".verify.lock", "Waiting for another verification to end."):',
        NO_LOCK,
        ("tests/companion/test_edited_meanwhile.py::test_one_build_and_one_verification_at_a_time",),
    ),
    Mutation(
        "stamp-taken-after-the-run",
        "companion/build/execution.py",
        "path, content = stamps[target], cache_keys.made_of(project, target, profile)",
        "path, content = cache_keys.stamp(project, target, profile), cache_keys.made_of(project, target, profile)",
        ("tests/companion/test_execution.py::test_what_is_edited_during_a_run_is_stale_after_it",),
    ),
    Mutation(
        "stamp-of-ones-own-taken-after-the-run",
        "companion/build/execution.py",
        "if still and stamp == cache_keys.run_stamp(project, build, name, profile, overrides, figure=figure):",
        "if still:",
        ("tests/companion/test_execution.py::test_a_run_of_ones_own_edited_meanwhile_is_not_kept",),
    ),
    Mutation(
        "put-back-is-not-noticed",
        "companion/build/execution.py",
        "dependencies.same_code(then, now, part)",
        "True",
        ("tests/companion/test_edited_meanwhile.py::test_what_is_put_back_during_a_run_is_not_fresh",),
    ),
)


def passes(clone: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether all pass in the clone; what pytest says of the first that does not."""
    environment = os.environ | {
        "PYTHONPATH": str(clone),
        # two versions of a file that are as long and as old would share their bytecode
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / "_build/tests/xla"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:cacheprovider", *dict.fromkeys(tests)]
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # such as a file that cannot be imported: no test has noticed anything
        raise RuntimeError(f"Pytest ended with {done.returncode}.\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    said = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return done.returncode == 0, said[1] if said else ""


def verdict(mutation: Mutation, clone: Path) -> tuple[bool, str]:
    """Whether it went as it must, and how it went."""
    before = mutation.apply(clone)
    try:
        unnoticed, failed = passes(clone, mutation.tests)
    except RuntimeError as error:
        return False, str(error)
    finally:
        (clone / mutation.file).write_text(before, encoding="utf-8")
    if mutation.equal:
        return unnoticed, f"cannot matter: {mutation.equal}" if unnoticed else f"matters: {failed}"
    return not unnoticed, f"unnoticed by {', '.join(mutation.tests)}" if unnoticed else failed


def main(names: Sequence[str]) -> int:
    """Try the mutations of these names, or all."""
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        if faults := [fault for mutation in chosen for fault in mutation.faults(clone)]:
            print("\n".join(faults), file=sys.stderr)
            return 2
        try:
            as_it_is, failed = passes(clone, [test for mutation in chosen for test in mutation.tests])
        except RuntimeError as error:
            as_it_is, failed = False, str(error)
        if not as_it_is:
            print(f"Without any change a test fails, so that no change can be told: {failed}", file=sys.stderr)
            return 2
        wide, good = max(len(mutation.name) for mutation in chosen), True
        for mutation in chosen:
            clock = time.monotonic()
            right, how = verdict(mutation, clone)
            print(
                f"{'✓' if right else '✗'} {mutation.name:{wide}} {time.monotonic() - clock:5.0f} s  {how}", flush=True
            )
            good &= right
    print("Every change went as it must." if good else "Not every change went as it must.")
    return 0 if good else 1


def known(name: str) -> str:
    """The name of a mutation."""
    if name not in {mutation.name for mutation in MUTATIONS}:
        raise argparse.ArgumentTypeError(f"there is no {name!r}; --help lists those there are")
    return name


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Names: " + ", ".join(mutation.name for mutation in MUTATIONS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=known, help="which changes; default: all")
    return parser


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args().names))
