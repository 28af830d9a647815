"""Files, locks, processes, signals, errors and YAML."""
