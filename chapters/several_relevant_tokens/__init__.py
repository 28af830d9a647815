"""One, none, or several relevant tokens: which weights are Bayes-optimal, and what softmax loses."""
