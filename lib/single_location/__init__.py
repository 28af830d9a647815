"""Single-location regression [D26]: one token of a prompt carries the answer, and a head has to find it.

This file exports the public types and functions of the folder.
"""

from lib.single_location.activations import Activation as Activation
from lib.single_location.activations import erf as erf
from lib.single_location.activations import exp as exp
from lib.single_location.activations import hardmax as hardmax
from lib.single_location.activations import linear as linear
from lib.single_location.activations import relu as relu
from lib.single_location.activations import sigmoid as sigmoid
from lib.single_location.activations import sink_softmax as sink_softmax
from lib.single_location.activations import softmax as softmax
from lib.single_location.activations import softplus as softplus
from lib.single_location.bayes_optimal import bayes_optimal_risk as bayes_optimal_risk
from lib.single_location.erm import simulate_erm as simulate_erm
from lib.single_location.few_tokens import Prompts as Prompts
from lib.single_location.population import attention_risk as attention_risk
from lib.single_location.population import bayes_risk as bayes_risk
from lib.single_location.population import best_elementwise_risk as best_elementwise_risk
from lib.single_location.population import best_risk as best_risk
from lib.single_location.replica import replica as replica
from lib.single_location.several_tokens import Absent as Absent
from lib.single_location.several_tokens import Independent as Independent
from lib.single_location.several_tokens import Several as Several
from lib.single_location.several_tokens import bayes_risk_bounds as bayes_risk_bounds
from lib.single_location.several_tokens import simulate_bayes_risk as simulate_bayes_risk
from lib.single_location.tasks import Head as Head
from lib.single_location.tasks import LocationTask as LocationTask
from lib.single_location.tasks import Max as Max
from lib.single_location.tasks import Overlaps as Overlaps
from lib.single_location.tasks import Spiked as Spiked
