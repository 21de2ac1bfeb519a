"""The collector: stores what agents measure, counts networks, fits rooflines, shows both."""

from roof_agent import __version__

__all__ = ["__version__"]
