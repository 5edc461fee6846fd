"""Run directories: written so that a half result never reads as a whole one, readable without caref."""
