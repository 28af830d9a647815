"""Custom runs: reports, sweeps, reruns from Python, and verification."""
