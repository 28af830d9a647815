"""A book on disk: paths, configuration, notebooks, parameters, statements."""
