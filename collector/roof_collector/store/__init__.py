"""What agents measured, kept in SQLite or PostgreSQL."""
