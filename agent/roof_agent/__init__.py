"""The agent that measures a board and sends what it finds to a collector."""

__version__ = "0.1.0"
