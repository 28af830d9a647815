"""Custom runs, their reports, sweeps, reruns from Python, verification."""
