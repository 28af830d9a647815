"""Static analysis of sources: dependencies, fingerprints, public names."""
