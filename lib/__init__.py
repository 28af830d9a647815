"""The science of the companion: attention on measures. Importing it changes no setting and creates no array.

It exports measures, attention, finite prompts, their mean errors, the integrals behind these, and helpers for many
computations at once. `lib.icl` and `lib.single_location` do the same for their folders. Import the rest from its
module: `lib.flow`, which needs diffrax, `lib.mixtures`, `lib.pairs`, `lib.random` and `lib.statistics`. What has a
leading underscore may change at any time.
"""

from lib.attention import Attention as Attention
from lib.attention import attend as attend
from lib.attention import dependent_fluctuation as dependent_fluctuation
from lib.attention import fluctuation as fluctuation
from lib.attention import linear_attend as linear_attend
from lib.attention import stream_attend as stream_attend
from lib.batching import in_batches as in_batches
from lib.batching import map_batched as map_batched
from lib.concentration import RadialTable as RadialTable
from lib.finite_prompt import LARGEST_TAU as LARGEST_TAU
from lib.finite_prompt import QueryRay as QueryRay
from lib.finite_prompt import mean_output as mean_output
from lib.finite_prompt import measured_statistics as measured_statistics
from lib.finite_prompt import output_error as output_error
from lib.finite_prompt import participation as participation
from lib.finite_prompt import quadrature_error as quadrature_error
from lib.finite_prompt import rate_exponent as rate_exponent
from lib.finite_prompt import sample_output as sample_output
from lib.finite_prompt import score_error as score_error
from lib.finite_prompt import score_statistics as score_statistics
from lib.finite_prompt import sink_statistics as sink_statistics
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
from lib.partition import Resolution as Resolution
from lib.partition import log_survival as log_survival
from lib.partition import log_tilted as log_tilted
from lib.partition import square_given_others as square_given_others
