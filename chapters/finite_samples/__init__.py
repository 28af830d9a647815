"""The value of n prompts to a trained head: replica theory, training runs, and the Bayes-optimal estimator."""
