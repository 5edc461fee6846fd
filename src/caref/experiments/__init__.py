"""One run, many runs: from a spec to a run directory."""
