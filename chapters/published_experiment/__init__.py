"""The published experiment of in-context regression: exact optima, Bayes, and stochastic gradient descent."""
