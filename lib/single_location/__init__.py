"""Single-location regression [D26]: one token of a prompt carries the answer, and a head has to find it.

This file exports the public types and functions of the folder.
"""

from lib.single_location.activations import Activation as Activation
from lib.single_location.activations import Erf as Erf
from lib.single_location.activations import PositiveKernel as PositiveKernel
from lib.single_location.activations import Softplus as Softplus
from lib.single_location.activations import compiled_lowest_risk as compiled_lowest_risk
from lib.single_location.activations import erf as erf
from lib.single_location.activations import exp as exp
from lib.single_location.activations import hardmax as hardmax
from lib.single_location.activations import linear as linear
from lib.single_location.activations import optimal_risk as optimal_risk
from lib.single_location.activations import relu as relu
from lib.single_location.activations import sigmoid as sigmoid
from lib.single_location.activations import softmax as softmax
from lib.single_location.activations import softplus as softplus
from lib.single_location.bayes_optimal import INFORMED as INFORMED
from lib.single_location.bayes_optimal import UNINFORMED as UNINFORMED
from lib.single_location.bayes_optimal import FixedPoint as FixedPoint
from lib.single_location.bayes_optimal import bayes_optimal_risk as bayes_optimal_risk
from lib.single_location.bayes_optimal import fixed_point as fixed_point
from lib.single_location.bayes_optimal import free_entropy as free_entropy
from lib.single_location.bayes_optimal import state_evolution as state_evolution
from lib.single_location.descent_trainers import full_batch_trainer as full_batch_trainer
from lib.single_location.descent_trainers import stochastic_trainer as stochastic_trainer
from lib.single_location.erm import ErmResult as ErmResult
from lib.single_location.erm import TrainingSet as TrainingSet
from lib.single_location.erm import draw_prompts as draw_prompts
from lib.single_location.erm import draw_truth as draw_truth
from lib.single_location.erm import fresh_risk as fresh_risk
from lib.single_location.erm import head_output as head_output
from lib.single_location.erm import informed as informed
from lib.single_location.erm import overlaps_of as overlaps_of
from lib.single_location.erm import simulate_erm as simulate_erm
from lib.single_location.erm import simulate_seeds as simulate_seeds
from lib.single_location.erm import uninformed as uninformed
from lib.single_location.few_tokens import Prompts as Prompts
from lib.single_location.few_tokens import ScoreLattice as ScoreLattice
from lib.single_location.few_tokens import best_key_slope as best_key_slope
from lib.single_location.few_tokens import mixed_risk as mixed_risk
from lib.single_location.overlaps import Head as Head
from lib.single_location.overlaps import Overlaps as Overlaps
from lib.single_location.population import attention_moments as attention_moments
from lib.single_location.population import attention_risk as attention_risk
from lib.single_location.population import bayes_integrals as bayes_integrals
from lib.single_location.population import bayes_risk as bayes_risk
from lib.single_location.population import bayes_risk_error as bayes_risk_error
from lib.single_location.population import best_elementwise_risk as best_elementwise_risk
from lib.single_location.population import best_risk as best_risk
from lib.single_location.population import single_token_posterior as single_token_posterior
from lib.single_location.replica import Replica as Replica
from lib.single_location.replica import replica as replica
from lib.single_location.tasks import LocationTask as LocationTask
from lib.single_location.tasks import Max as Max
from lib.single_location.tasks import Spiked as Spiked
