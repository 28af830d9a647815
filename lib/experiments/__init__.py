"""The experiments, one a notebook: parameters in, a `Result` out. A table of contents."""

from lib.experiments.exact_finite_prompt import exact_finite_prompt as exact_finite_prompt
from lib.experiments.finite_samples import finite_samples as finite_samples
from lib.experiments.gaussian_limit import gaussian_limit as gaussian_limit
from lib.experiments.gradient_concentration import gradient_concentration as gradient_concentration
from lib.experiments.icl_finite import icl_finite as icl_finite
from lib.experiments.icl_infinite import icl_infinite as icl_infinite
from lib.experiments.measures import measures as measures
from lib.experiments.needle_in_a_long_prompt import needle_in_a_long_prompt as needle_in_a_long_prompt
from lib.experiments.output_concentration import output_concentration as output_concentration
from lib.experiments.published_experiment import published_experiment as published_experiment
from lib.experiments.risk_and_parameters import risk_and_parameters as risk_and_parameters
from lib.experiments.sharp_rates import sharp_rates as sharp_rates
from lib.experiments.single_location_training import single_location_training as single_location_training
from lib.experiments.softmax_advantage import softmax_advantage as softmax_advantage
from lib.experiments.trajectory_stability import trajectory_stability as trajectory_stability
