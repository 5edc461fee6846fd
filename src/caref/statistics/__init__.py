"""Statistics of results: numbers in, numbers out; nothing here knows of runs, files or models."""
