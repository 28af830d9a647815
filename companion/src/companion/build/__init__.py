"""Cache keys, plan, execution of notebooks, publication of figures."""
