"""The experiments, one a notebook: parameters in, a `Result` out. A table of contents."""

from lib.experiments.gaussian_limit import gaussian_limit as gaussian_limit
from lib.experiments.measures import measures as measures
