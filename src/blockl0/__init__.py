"""Best-subset selection and ℓ0-sparse optimization by block decomposition."""

from blockl0._version import __version__

__all__ = ["__version__"]
