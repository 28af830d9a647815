"""How strong a hint must be for softmax to find one token among up to a trillion."""
