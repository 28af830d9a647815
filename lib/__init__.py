"""The science of the companion: attention on measures. A table of contents; importing it changes nothing."""

from lib.attention import Attention as Attention
from lib.attention import attend as attend
from lib.attention import fluctuation as fluctuation
from lib.attention import linear_attend as linear_attend
from lib.attention import mean_square_weight as mean_square_weight
from lib.attention import stream_attend as stream_attend
from lib.finite_prompt import QueryRay as QueryRay
from lib.finite_prompt import mean_output as mean_output
from lib.finite_prompt import output_error as output_error
from lib.finite_prompt import participation as participation
from lib.finite_prompt import quadrature_error as quadrature_error
from lib.finite_prompt import rate_exponent as rate_exponent
from lib.finite_prompt import sample_output as sample_output
from lib.finite_prompt import score_error as score_error
from lib.finite_prompt import typical_participation as typical_participation
from lib.measures import Empirical as Empirical
from lib.measures import Gaussian as Gaussian
from lib.measures import GaussianMixture as GaussianMixture
from lib.measures import Laplace as Laplace
from lib.measures import Measure as Measure
from lib.measures import Pushforward as Pushforward
from lib.measures import Rademacher as Rademacher
from lib.measures import Uniform as Uniform
from lib.measures import empirical as empirical
from lib.measures import tilted_cov as tilted_cov
from lib.measures import tilted_mean as tilted_mean
