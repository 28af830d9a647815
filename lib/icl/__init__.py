"""In-context learning: the task, its risks, heads, and training.

This file exports the public types and functions of the folder.
"""

from lib.icl.averages import PairAverage as PairAverage
from lib.icl.averages import QueryAverage as QueryAverage
from lib.icl.blocks import Blocks as Blocks
from lib.icl.blocks import best_in_the_valley as best_in_the_valley
from lib.icl.blocks import block_attention as block_attention
from lib.icl.blocks import block_risk as block_risk
from lib.icl.blocks import valley_limit as valley_limit
from lib.icl.heads import best_pair as best_pair
from lib.icl.heads import best_values as best_values
from lib.icl.heads import heads_risk as heads_risk
from lib.icl.regression import LinearRegression as LinearRegression
from lib.icl.score_table import ScoreTable as ScoreTable
from lib.icl.training import prompt_loss as prompt_loss
