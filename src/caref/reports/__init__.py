"""Runs told to a reader: a summary as plain data, figures, one page that holds everything."""
