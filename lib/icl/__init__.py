"""In-context learning: the task, its risks, heads, and training.

This file exports the public types and functions of the folder.
"""

from lib.icl.averages import PairAverage as PairAverage
from lib.icl.averages import QueryAverage as QueryAverage
from lib.icl.batches import batch_loss as batch_loss
from lib.icl.batches import linear_summary as linear_summary
from lib.icl.batches import normal_pairs as normal_pairs
from lib.icl.batches import softmax_summary as softmax_summary
from lib.icl.blocks import Blocks as Blocks
from lib.icl.blocks import best_blocks as best_blocks
from lib.icl.blocks import best_gain as best_gain
from lib.icl.blocks import block_attention as block_attention
from lib.icl.blocks import block_risk as block_risk
from lib.icl.blocks import infinite_limit as infinite_limit
from lib.icl.heads import best_centred_values as best_centred_values
from lib.icl.heads import best_pair as best_pair
from lib.icl.heads import best_values as best_values
from lib.icl.heads import debiased_descent as debiased_descent
from lib.icl.heads import heads_risk as heads_risk
from lib.icl.heads import long_prompt_coefficient as long_prompt_coefficient
from lib.icl.heads import long_prompt_covariance as long_prompt_covariance
from lib.icl.heads import opposite_values as opposite_values
from lib.icl.heads import several_tasks_law as several_tasks_law
from lib.icl.regression import LinearRegression as LinearRegression
from lib.icl.score_table import ScoreTable as ScoreTable
from lib.icl.training import collapsed as collapsed
from lib.icl.training import fast_normal as fast_normal
from lib.icl.training import linear_pool as linear_pool
from lib.icl.training import plain as plain
from lib.icl.training import prompt_loss as prompt_loss
from lib.icl.training import softmax_pool as softmax_pool
from lib.icl.valley import best_in_the_valley as best_in_the_valley
from lib.icl.valley import price_of_one_head as price_of_one_head
from lib.icl.valley import valley_limit as valley_limit
