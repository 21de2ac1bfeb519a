"""What the command line can do, a verb a module; each is imported when it is asked for."""
