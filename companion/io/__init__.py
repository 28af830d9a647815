"""Files, locks, processes, signals and errors: what every other layer rests on."""
