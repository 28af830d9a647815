"""One-line changes that some test must detect: `.venv/bin/python tests/mutations.py [NAME]...`.

The script clones the last commit into a temporary folder. The tests named here must pass there, and then one of them
must fail for each change. If a change has no effect, its entry gives the reason, and its tests must pass. All changes
take half an hour. The exit status is 0 if every change has the expected result, 1 if not, and 2 if no change can be
tested. Pytest does not run this script: `tests/test_mutations.py` checks that every line and every test exists.
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
# Replacement for a lock.
NO_LOCK = 'with __import__("contextlib").nullcontext():'


@dataclass(frozen=True)
class Mutation:
    """Replace `old` in `file` by `new`: one of `tests` must fail, or pass if `equal` gives a reason for no effect."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equal: str = ""

    def faults(self, root: Path) -> list[str]:
        """Return the faults of this entry for the checkout in `root`, one sentence each."""
        path, messages = root / self.file, []
        count = path.read_text(encoding="utf-8").count(self.old) if path.is_file() else 0
        if count != 1:
            messages.append(f"{self.name}: {self.old!r} occurs {count} times in {self.file}, and must occur once.")
        for test in self.tests:
            file, _, function = test.partition("::")
            text = (root / file).read_text(encoding="utf-8") if (root / file).is_file() else ""
            if f"\ndef {function.partition('[')[0]}(" not in text:
                messages.append(f"{self.name}: there is no {test}.")
        return messages

    def apply(self, root: Path) -> str:
        """Change the file, and return its previous content."""
        path = root / self.file
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(self.old, self.new), encoding="utf-8")
        return before


MUTATIONS = (
    # --- numbers --------------------------------------------------------------------------------------------------
    Mutation(
        "quadrature-factor",
        "lib/finite_prompt.py",
        "xp.where(_guaranteed(tau_squared, log_length), 2 * change + _ROUNDING",
        "xp.where(_guaranteed(tau_squared, log_length), change + _ROUNDING",
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
        "h) + shared * xi1 + own * xi2",
        "h) + shared * xi1 - own * xi2",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
        equal="ξ₂ is normal and used only here, so that the distribution of the gradient does not depend on the sign",
    ),
    Mutation(
        "collapsed-own-dropped",
        "lib/icl/training.py",
        "h) + shared * xi1 + own * xi2",
        "h) + shared * xi1",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
    ),
    Mutation(
        "collapsed-shared-sign",
        "lib/icl/training.py",
        "h) + shared * xi1 +",
        "h) - shared * xi1 +",
        ("tests/lib/test_icl_training.py::test_collapsed_and_plain_outputs_agree_in_law",),
    ),
    Mutation(
        "batches-own-sign",
        "chapters/published_experiment/batches.py",
        "2 * along * rho * q12",
        "-2 * along * rho * q12",
        ("tests/chapters/test_batches.py::test_batches_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "batches-own-dropped",
        "chapters/published_experiment/batches.py",
        "by_score[1] + shared * xi1 + own * xi2)",
        "by_score[1] + shared * xi1)",
        ("tests/chapters/test_batches.py::test_batches_in_more_dimensions_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "batches-shared-sign",
        "chapters/published_experiment/batches.py",
        "by_score[1] + shared * xi1 +",
        "by_score[1] - shared * xi1 +",
        ("tests/chapters/test_batches.py::test_batches_in_more_dimensions_have_the_law_of_plain_prompts",),
    ),
    Mutation(
        "replica-tolerance",
        "lib/single_location/replica.py",
        "_RESIDUAL_TOLERANCE, _LARGEST_STEPS = 1e-5, 200",
        "_RESIDUAL_TOLERANCE, _LARGEST_STEPS = 1e-4, 200",
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
        "return 1.0 - explained, (mixture.length * mean - total_score)",
        "return 1.0 - explained, (total_score - mixture.length * mean)",
        ("tests/lib/test_single_location.py::test_the_affine_fit_has_its_least_risk_at_its_own_slope",),
    ),
    Mutation(
        "start-classified-by-its-first-head",
        "chapters/second_minima/stationary_heads.py",
        "zip(paths.points[:, -1], ",
        "zip(paths.points[:, 0], ",
        ("tests/chapters/test_second_minima.py::test_ends_are_classified_by_mean_square_and_distance",),
    ),
    Mutation(
        "start-classified-by-its-first-risk",
        "chapters/second_minima/stationary_heads.py",
        "paths.risks[:, -1], strict=True",
        "paths.risks[:, 0], strict=True",
        ("tests/chapters/test_second_minima.py::test_ends_are_classified_by_mean_square_and_distance",),
    ),
    Mutation(
        "spectrum-of-another-dimension",
        "chapters/sharp_rates/slopes.py",
        "errors.slope(density, len(values))",
        "errors.slope(density, 1)",
        ("tests/chapters/test_sharp_rates.py::test_slopes_are_those_of_outputs_of_that_dimension",),
    ),
    Mutation(
        "local-slopes-of-another-dimension",
        "chapters/sharp_rates/slopes.py",
        "np.sqrt(squared), 1), 1)",
        "np.sqrt(squared), 1), 2)",
        ("tests/chapters/test_sharp_rates.py::test_heads_of_one_coordinate_have_the_slopes_of_one_dimension",),
    ),
    Mutation(
        "exponents-of-another-dimension",
        "chapters/sharp_rates/slopes.py",
        "np.sqrt(h), 1), 1)",
        "np.sqrt(h), 1), 2)",
        ("tests/chapters/test_sharp_rates.py::test_heads_of_one_coordinate_have_the_slopes_of_one_dimension",),
    ),
    Mutation(
        "golden-exponent-of-another-dimension",
        "chapters/sharp_rates/slopes.py",
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
        "chapters/risk_and_parameters/isotropic_heads.py",
        "norm / dimension**0.5, gain, float(np.exp(search.fun))",
        "norm / dimension**0.5, dimension**0.5 / norm, float(np.exp(search.fun))",
        ("tests/chapters/test_risk_and_parameters.py::test_the_price_is_that_of_the_returned_head",),
    ),
    Mutation(
        "price-on-the-valley",
        "chapters/risk_and_parameters/isotropic_heads.py",
        "norm, gain = np.exp(search.x)",
        "norm, gain = np.exp(search.x[0]), dimension**0.5 / np.exp(search.x[0])",
        ("tests/chapters/test_risk_and_parameters.py::test_the_price_is_that_of_the_returned_head",),
    ),
    Mutation(
        "no-gain-from-the-best-gain",
        "chapters/icl_finite/valley_search.py",
        "at_inverse - gained",
        "at_inverse",
        ("tests/chapters/test_icl_finite.py::test_a_head_of_the_valley_has_its_best_gain",),
    ),
    Mutation(
        "one-head-at-the-gain-of-infinite-prompts",
        "chapters/risk_and_parameters/opposite_heads.py",
        "gains = (outputs @ self.targets) / np.sum(outputs**2, axis=1)",
        "gains = 1 / self.tilts",
        ("tests/chapters/test_risk_and_parameters.py::test_one_head_is_compared_at_its_best_gain",),
    ),
    Mutation(
        "saddle-sign",
        "chapters/mixtures/landscape.py",
        "upper = -force.height *",
        "upper = force.height *",
        ("tests/chapters/test_mixtures.py::test_the_saddle_has_no_value_of_tokens_and_is_above_the_bayes_risk",),
    ),
    Mutation(
        "least-excess-undamped",
        "chapters/mixtures/landscape.py",
        "change -= step / (1 + decrement)[:, None]",
        "change -= 0.1 * step / (1 + decrement)[:, None]",
        ("tests/chapters/test_mixtures.py::test_least_excess_at_a_gate_is_that_of_a_search",),
    ),
    Mutation(
        "distance-to-a-line",
        "chapters/mixtures/flows.py",
        "/ jnp.sqrt(1 + chance**2)",
        "",
        ("tests/chapters/test_mixtures.py::test_distances_to_the_families_are_the_least_ones",),
    ),
    Mutation(
        "normal-form-without-the-kernel",
        "chapters/mixtures/flows.py",
        "change @ (np.eye(change.shape[1]) - fast.T @ fast) @ change.T",
        "change @ change.T",
        ("tests/chapters/test_mixtures.py::test_the_inverse_square_of_the_distance_grows_as_the_normal_form_predicts",),
    ),
    Mutation(
        "curvature-without-the-independent-part",
        "chapters/mixtures/flows.py",
        " + mass.sum() * (cov - np.outer(along, along)))",
        ")",
        ("tests/chapters/test_mixtures.py::test_the_curvature_at_the_best_slope_is_that_of_a_simulation",),
    ),
    Mutation(
        "outputs-without-the-weights",
        "chapters/mixtures/denoisers.py",
        "jax.nn.softmax(tilts @ means.T + noisy.log_weights, axis=1)",
        "jax.nn.softmax(tilts @ means.T, axis=1)",
        ("tests/chapters/test_mixtures.py::test_products_of_matrices_are_attention_and_the_posterior_mean",),
    ),
    Mutation(
        "posterior-without-norms",
        "chapters/mixtures/denoisers.py",
        "mixture.log_weights - 0.5 * xp.sum((means @ inverse) * means, axis=1)",
        "mixture.log_weights",
        ("tests/chapters/test_mixtures.py::test_products_of_matrices_are_attention_and_the_posterior_mean",),
    ),
    Mutation(
        "pairs-of-the-laboratory-cross-term",
        "chapters/laboratory/key_pairs.py",
        "alone.ravel() + others *",
        "alone.ravel() + (others + 1) *",
        ("tests/chapters/test_laboratory.py::test_risks_of_pairs_are_those_of_the_library",),
    ),
    Mutation(
        "quartic-term-of-opposite-keys",
        "chapters/opposite_heads/exact_risks.py",
        "quadratic * (d + 4) * (d + 3 + ratio) / 24",
        "quadratic * (d + 4) * (d + 2 + ratio) / 24",
        ("tests/chapters/test_opposite_heads.py::test_the_limit_curve_has_its_minimum_at_the_limit_of_the_best_key",),
    ),
    Mutation(
        "moments-of-a-descent-step",
        "chapters/opposite_heads/published_losses.py",
        "power * (n + d + 1) + noise",
        "power * (n + d) + noise",
        (
            "tests/chapters/test_opposite_heads.py::test_the_best_step_of_debiased_descent_has_the_error_of_the_library",
            "tests/chapters/test_opposite_heads.py::test_the_error_of_a_descent_step_is_that_of_simulated_prompts",
        ),
    ),
    Mutation(
        "gradient-of-scores-without-the-output",
        "chapters/opposite_heads/training.py",
        "barrier(factor * (answer - output[:, None]))",
        "barrier(factor * answer)",
        ("tests/chapters/test_opposite_heads.py::test_the_gradient_by_hand_is_that_of_automatic_differentiation",),
    ),
    Mutation(
        "odd-part-for-the-even-part",
        "chapters/opposite_heads/prices.py",
        "output(each) + output(1 / each)",
        "output(each) - output(1 / each)",
        ("tests/chapters/test_opposite_heads.py::test_the_even_part_is_half_the_sum_of_the_outputs_at_both_queries",),
    ),
    Mutation(
        "even-part-of-heads-not-centred",
        "chapters/real_heads/even_parts.py",
        '"centred": square(even - average)',
        '"centred": square(even)',
        ("tests/chapters/test_real_heads.py::test_even_squares_are_those_of_a_plain_loop",),
    ),
    Mutation(
        "even-part-of-gaussian-tokens-for-one-query",
        "chapters/real_heads/even_parts.py",
        "weights[inside] += np.asarray(pair_participation(*pair)) / 2",
        "weights[inside] *= 1.0",
        ("tests/chapters/test_real_heads.py::test_gaussian_tokens_have_the_exact_even_part",),
    ),
    Mutation(
        "shrinkage-of-the-pair-with-one-plus-x",
        "chapters/which_kernel/linear_kernel.py",
        "weighted * (power - slope / change + square / change**2)",
        "weighted * (power - slope + square / change**2)",
        ("tests/chapters/test_which_kernel.py::test_the_error_with_one_plus_x_is_a_double_integral",),
    ),
    Mutation(
        "other-tokens-without-their-values",
        "chapters/threshold_in_temperature/below_threshold.py",
        "+ averages.others_square / variance",
        "+ averages.others_square",
        ("tests/chapters/test_threshold_in_temperature.py::test_the_risk_is_that_of_simulated_tokens",),
    ),
    Mutation(
        "relevant-score-as-wide-as-the-others",
        "chapters/threshold_in_temperature/softmax_weights.py",
        "log_tilted(1, y + shift, relevant_spread)",
        "log_tilted(1, y + shift, spread)",
        ("tests/chapters/test_softmax_weights.py::test_six_tokens_are_those_of_simulated_scores",),
    ),
    Mutation(
        "price-of-a-centred-head",
        "chapters/which_kernel/centred.py",
        "(length - 2) * (d + 2 + ratio) - 8",
        "(length - 1) * (d + 2 + ratio) - 8",
        ("tests/chapters/test_which_kernel.py::test_the_curvature_of_a_centred_head_is_that_of_sampled_cumulants",),
    ),
    Mutation(
        "opposite-kernel-of-the-same-sign",
        "chapters/which_kernel/opposite_pairs.py",
        "two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))\n    survival",
        "two_tokens(1, log_phi) - two_tokens(-1, log_phi_opposite))\n    survival",
        ("tests/chapters/test_which_kernel.py::test_opposite_exponentials_are_a_pair_of_softmax_heads",),
    ),
    Mutation(
        "best-values-without-the-plain-average",
        "chapters/worth_of_heads/long_prompts.py",
        "rows = np.delete(rows, 1, axis=0)",
        "rows = np.delete(rows, [0, 1], axis=0)",
        ("tests/chapters/test_worth_of_heads.py::test_the_best_values_solve_the_normal_equations",),
    ),
    Mutation(
        "unused-heads-count",
        "chapters/worth_of_heads/disjoint_tasks.py",
        "jnp.where(jnp.outer(used, used) > 0, covariance, jnp.eye(heads))",
        "covariance + 1e-9 * jnp.eye(heads)",
        ("tests/chapters/test_worth_of_heads.py::test_unused_heads_do_not_change_the_best_error",),
    ),
    Mutation(
        "noise-of-one-direction-too-many",
        "chapters/worth_of_heads/separation.py",
        "score_error + (dimension - 1) * participation",
        "score_error + dimension * participation",
        ("tests/chapters/test_worth_of_heads.py::test_the_error_of_a_head_is_that_of_the_library",),
    ),
    Mutation(
        "queries-without-the-weight-of-their-scores",
        "chapters/icl_finite/figures/trajectory_gap.py",
        "log_length, dimension + 2)",
        "log_length, dimension)",
        ("tests/chapters/test_icl_finite.py::test_the_queries_beyond_the_law_of_long_prompts_are_counted",),
    ),
    Mutation(
        "theories-told-apart-by-one-bound",
        "lib/statistics.py",
        "> 2 * bound *",
        "> bound *",
        (
            "tests/lib/test_statistics.py::test_a_simulation_that_tells_theories_apart_rejects_one_if_it_agrees_with_the_other",
        ),
    ),
    Mutation(
        "withheld-claims-in-every-record",
        "companion/src/companion/figures/record.py",
        "return content if record.withheld else {",
        "return content if True else {",
        ("companion/tests/test_withheld.py::test_a_record_without_withheld_claims_is_written_as_before",),
    ),
    Mutation(
        "every-head-shared",
        "chapters/worth_of_heads/separation.py",
        "        if shared:\n",
        "        if True:\n",
        ("tests/chapters/test_worth_of_heads.py::test_simulated_prompts_are_those_of_a_plain_loop",),
    ),
    Mutation(
        "flow-of-plain-entries",
        "chapters/worth_of_heads/allocation.py",
        "[:, None, None] ** 0.5",
        "[:, None, None] ** 0.0",
        ("tests/chapters/test_worth_of_heads.py::test_the_flow_is_the_descent_of_the_diagonal_matrices",),
    ),
    Mutation(
        "no-bias-of-short-prompts",
        "chapters/worth_of_heads/allocation.py",
        "(2 * coefficient + bias) / length",
        "2 * coefficient / length",
        (
            "tests/chapters/test_worth_of_heads.py::test_the_error_of_long_prompts_is_that_of_one_regression_also_with_bias",
        ),
    ),
    Mutation(
        "flow-ignores-the-preconditioner",
        "lib/flow.py",
        "slope if precondition is None else precondition(slope)",
        "slope",
        ("tests/lib/test_flow.py::test_a_preconditioned_flow_is_the_plain_flow_in_other_coordinates",),
    ),
    Mutation(
        "preconditioner-on-one-side",
        "chapters/preconditioned_training/matrix_regression.py",
        "factor @ slope.bilinear @ factor",
        "factor @ slope.bilinear",
        (
            "tests/chapters/test_preconditioned_training.py::test_a_balanced_preconditioned_flow_is_logistic_for_every_target",
        ),
    ),
    Mutation(
        "start-balanced-for-the-plain-flow",
        "chapters/preconditioned_training/matrix_regression.py",
        "spectrum.power(-0.5 - power / 4)",
        "spectrum.power(-0.5)",
        ("tests/chapters/test_preconditioned_training.py::test_the_size_of_the_optimum_is_that_of_the_target",),
    ),
    Mutation(
        "one-inverse-less-for-blocks",
        "chapters/preconditioned_training/matrix_regression.py",
        "inverse @ inverse @ slope.matrix",
        "inverse @ slope.matrix",
        ("tests/chapters/test_preconditioned_training.py::test_flows_are_those_of_another_solver",),
    ),
    Mutation(
        "one-rate-too-many",
        "chapters/preconditioned_training/rates.py",
        "(flat))[-count:]",
        "(flat))[-count - 1 :]",
        ("tests/chapters/test_preconditioned_training.py::test_rates_of_blocks_are_those_of_the_residual",),
    ),
    Mutation(
        "error-of-the-plain-values",
        "chapters/preconditioned_training/finite_errors.py",
        "@ table.participation) / factor",
        "@ table.participation)",
        ("tests/chapters/test_preconditioned_training.py::test_averaged_errors_are_those_of_a_grid_of_queries",),
    ),
    Mutation(
        "limit-without-the-shift",
        "chapters/preconditioned_training/finite_errors.py",
        "shifted * (sigma**2 * growth).sum()",
        "shifted * (sigma**2).sum()",
        ("tests/chapters/test_preconditioned_training.py::test_the_limit_is_the_mean_fluctuation",),
    ),
    Mutation(
        "least-noise-of-prompts",
        "chapters/trajectory_stability/envelope.py",
        "_root_mean_square(gaps).max(axis=0)",
        "_root_mean_square(gaps).min(axis=0)",
        ("tests/chapters/test_trajectory_stability.py::test_the_noise_of_prompts_is_that_of_the_worst_time",),
    ),
    # --- companion -------------------------------------------------------------------------------------------------
    Mutation(
        "publication-without-lock",
        "companion/src/companion/build/publication_policy.py",
        'with locked(build.locks / f"publish-{name}", f"{name}: waiting for another process to publish it"):',
        NO_LOCK,
        ("companion/tests/test_publication_policy.py::test_publication_waits_for_another",),
    ),
    Mutation(
        "run-without-lock",
        "companion/src/companion/build/execution.py",
        "with atomic.locked(build.locks / spec.notebook, waiting):",
        NO_LOCK,
        ("companion/tests/test_edited_meanwhile.py::test_parameters_are_read_after_the_wait",),
    ),
    Mutation(
        "drawing-without-lock",
        "companion/src/companion/build/redraw.py",
        'with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):',
        NO_LOCK,
        ("companion/tests/test_edited_meanwhile.py::test_a_picture_is_redrawn_after_the_wait",),
    ),
    Mutation(
        "build-without-lock",
        "companion/src/companion/cli/build.py",
        'with atomic.locked(project.generated / ".build.lock", "Waiting for another build to end."):',
        NO_LOCK,
        ("companion/tests/test_edited_meanwhile.py::test_only_one_build_and_one_verification_run_at_a_time",),
    ),
    Mutation(
        "verification-without-lock",
        "companion/src/companion/cli/verify.py",
        'with atomic.locked(home.generated / ".verify.lock", "Waiting for another verification to end."):',
        NO_LOCK,
        ("companion/tests/test_edited_meanwhile.py::test_only_one_build_and_one_verification_run_at_a_time",),
    ),
    Mutation(
        "stamp-taken-after-the-run",
        "companion/src/companion/build/execution.py",
        "fresh = [target for target in before if after.get(target) == before[target]]",
        "fresh = [*before]",
        ("companion/tests/test_execution.py::test_a_source_edited_during_a_run_makes_the_result_stale",),
    ),
)


def passes(clone: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Return whether all tests pass in the clone, and the name of the first that fails."""
    environment = os.environ | {
        "PYTHONPATH": str(clone),
        # Python would reuse the bytecode of another version of a file with equal size and date
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / "_build/tests/xla"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:cacheprovider", *dict.fromkeys(tests)]
    finished = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode not in (0, 1):  # pytest itself failed, for example because a module cannot be imported
        raise RuntimeError(
            f"Pytest ended with {finished.returncode}.\n{finished.stdout[-2000:]}{finished.stderr[-2000:]}"
        )
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", finished.stdout, re.MULTILINE)
    return finished.returncode == 0, failed[1] if failed else ""


def verdict(mutation: Mutation, clone: Path) -> tuple[bool, str]:
    """Return whether the change has the expected result, and a description of the result."""
    before = mutation.apply(clone)
    try:
        passed, failed = passes(clone, mutation.tests)
    except RuntimeError as error:
        return False, str(error)
    finally:
        (clone / mutation.file).write_text(before, encoding="utf-8")
    if mutation.equal:
        return passed, f"has no effect: {mutation.equal}" if passed else f"has an effect: {failed}"
    return not passed, f"not detected by {', '.join(mutation.tests)}" if passed else failed


def main(names: Sequence[str]) -> int:
    """Try the mutations with these names (default: all)."""
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        if faults := [fault for mutation in chosen for fault in mutation.faults(clone)]:
            print("\n".join(faults), file=sys.stderr)
            return 2
        try:
            unchanged_passes, failed = passes(clone, [test for mutation in chosen for test in mutation.tests])
        except RuntimeError as error:
            unchanged_passes, failed = False, str(error)
        if not unchanged_passes:
            print(f"A test fails without any change, so that no change can be detected: {failed}", file=sys.stderr)
            return 2
        width, all_expected = max(len(mutation.name) for mutation in chosen), True
        for mutation in chosen:
            clock = time.monotonic()
            expected, description = verdict(mutation, clone)
            print(
                f"{'✓' if expected else '✗'} {mutation.name:{width}} {time.monotonic() - clock:5.0f} s  {description}",
                flush=True,
            )
            all_expected &= expected
    print("Every change has the expected result." if all_expected else "Some changes have an unexpected result.")
    return 0 if all_expected else 1


def mutation_name(name: str) -> str:
    """Return the name, or raise an error if no mutation has it."""
    if name not in {mutation.name for mutation in MUTATIONS}:
        raise argparse.ArgumentTypeError(f"there is no {name!r}; --help lists all names")
    return name


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Names: " + ", ".join(mutation.name for mutation in MUTATIONS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=mutation_name, help="changes to try (default: all)")
    return parser


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args().names))
