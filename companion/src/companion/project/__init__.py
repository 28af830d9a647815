"""Read a book from disk: paths, configuration, notebooks, parameters, statements."""
