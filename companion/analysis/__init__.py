"""What sources depend on, their fingerprints, and the index of public names."""
