"""Where the answer sits at one hidden token, softmax is Bayes-optimal; what every other choice loses."""
