"""The signal strength that softmax needs to find one relevant token among up to a trillion."""
