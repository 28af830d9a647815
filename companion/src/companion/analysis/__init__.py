"""Static analysis of sources: dependencies and their digests, locked versions, the index of public names."""
