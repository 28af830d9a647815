"""Softmax attains the Bayes risk where one relevant token determines the label; other activations do not."""
