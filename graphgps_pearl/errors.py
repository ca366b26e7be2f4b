"""Errors that the user can fix: one line that names what is at fault and what to do."""


class UserError(Exception):
    """A mistake in what the user gave us (a config, a file, a graph); shown as one line."""


class ConfigError(UserError):
    """A config file, key or value that cannot be used."""


class DataError(UserError):
    """A dataset, file, row or graph that cannot be used."""


class MissingExtraError(UserError, ImportError):
    """A package of an optional extra that is not installed."""
