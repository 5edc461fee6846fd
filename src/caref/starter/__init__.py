"""The starter model: a small T5 that comes with the package, and the recipe that it was trained by."""
