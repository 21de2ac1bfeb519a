"""The networks that come with the collector, and those that were added to it."""
