"""Which kernel for which task: regression and retrieval with heads whose weights are not exponential."""
