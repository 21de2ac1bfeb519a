"""The pages: what boards can do, what was measured, and how both compare."""
