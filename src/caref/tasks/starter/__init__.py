"""A small world of everyday things, and tasks in the four shapes of the benchmark made from it.

Every answer follows from facts of a curated table (``world.yaml``), so the true cause of each label is
known: a test bed for explanations, and something to try everything on without a download.
"""
