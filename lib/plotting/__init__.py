"""The pictures: a `Result` in, a figure out. A table of contents."""

from lib.plotting.gaussian_limit import finite_prompt_response as finite_prompt_response
from lib.plotting.gaussian_limit import laplace_domain as laplace_domain
from lib.plotting.gaussian_limit import mean_output as mean_output
from lib.plotting.gaussian_limit import other_measures as other_measures
from lib.plotting.measures import one_prompt_converges as one_prompt_converges
from lib.plotting.measures import order_does_not_matter as order_does_not_matter
from lib.plotting.measures import single_token as single_token
from lib.plotting.measures import the_tilt as the_tilt
from lib.plotting.style import style as style
