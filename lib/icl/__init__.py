"""In-context learning: risks, heads, tasks and training.

It exports the functions and types that users start from. Nodes of quadratures and random words, on which they are
built, stay in their modules.
"""

from lib.icl.averages import PairAverage as PairAverage
from lib.icl.averages import QueryAverage as QueryAverage
from lib.icl.averages import line_average as line_average
from lib.icl.averages import pair_average as pair_average
from lib.icl.averages import query_average as query_average
from lib.icl.averages import radial_average as radial_average
from lib.icl.batches import LinearSummary as LinearSummary
from lib.icl.batches import SoftmaxSummary as SoftmaxSummary
from lib.icl.batches import Summary as Summary
from lib.icl.batches import batch_loss as batch_loss
from lib.icl.batches import linear_summary as linear_summary
from lib.icl.batches import softmax_summary as softmax_summary
from lib.icl.blocks import Blocks as Blocks
from lib.icl.blocks import balanced_start as balanced_start
from lib.icl.blocks import best_blocks as best_blocks
from lib.icl.blocks import best_gain as best_gain
from lib.icl.blocks import block_attention as block_attention
from lib.icl.blocks import block_head as block_head
from lib.icl.blocks import block_risk as block_risk
from lib.icl.blocks import infinite_limit as infinite_limit
from lib.icl.blocks import isotropic_blocks as isotropic_blocks
from lib.icl.blocks import line_head as line_head
from lib.icl.linear_regression import ErrorTerms as ErrorTerms
from lib.icl.linear_regression import LinearRegression as LinearRegression
from lib.icl.linear_regression import RegressionPrompts as RegressionPrompts
from lib.icl.score_table import ScoreTable as ScoreTable
from lib.icl.score_table import score_table as score_table
from lib.icl.tasks import Classification as Classification
from lib.icl.tasks import Episode as Episode
from lib.icl.tasks import GeneralRegression as GeneralRegression
from lib.icl.tasks import Independent as Independent
from lib.icl.tasks import IndexRegression as IndexRegression
from lib.icl.tasks import Labels as Labels
from lib.icl.tasks import Logistic as Logistic
from lib.icl.tasks import Noisy as Noisy
from lib.icl.tasks import SingleIndex as SingleIndex
from lib.icl.tasks import Task as Task
from lib.icl.tasks import episode_loss as episode_loss
from lib.icl.tasks import half_square as half_square
from lib.icl.tasks import hide_label as hide_label
from lib.icl.tasks import logistic as logistic
from lib.icl.tasks import predict as predict
from lib.icl.training import Collapsed as Collapsed
from lib.icl.training import Plain as Plain
from lib.icl.training import Pool as Pool
from lib.icl.training import Sampling as Sampling
from lib.icl.training import collapsed as collapsed
from lib.icl.training import fast_normal as fast_normal
from lib.icl.training import linear_pool as linear_pool
from lib.icl.training import plain as plain
from lib.icl.training import prompt_loss as prompt_loss
from lib.icl.training import softmax_pool as softmax_pool
from lib.icl.valley import best_in_the_valley as best_in_the_valley
from lib.icl.valley import least_price as least_price
from lib.icl.valley import price_of_one_head as price_of_one_head
from lib.icl.valley import valley_limit as valley_limit
