"""The mistakes a caller can make, each told in one line.

The command line prints these without a traceback and exits with code 2.
"""


class CarefError(ValueError):
    """What was asked cannot be done: the message says what was expected, what came and what to do."""


class UnknownNameError(CarefError):
    """A name that a registry does not hold."""


class DataError(CarefError):
    """A data set that cannot be read as it is; the message names file and line."""


class MissingExtraError(CarefError):
    """A feature whose optional dependency is not installed; the message names the extra."""
