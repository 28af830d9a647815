"""Cache keys, the build plan, execution of notebooks, and publication of figures."""
