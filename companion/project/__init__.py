"""A book on disk: its paths, configuration, notebooks, parameters and statements, read without importing it."""
