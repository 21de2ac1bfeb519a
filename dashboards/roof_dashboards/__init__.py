"""Templates and static files of the collector's pages."""
