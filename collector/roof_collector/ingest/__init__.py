"""What agents send: taken, checked, stored, acknowledged."""
