"""The published experiment, with its answers known beforehand: exact optima, Bayes, and stochastic gradient descent."""
