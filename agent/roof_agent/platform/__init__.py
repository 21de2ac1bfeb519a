"""What the agent finds out about its board; every root (/proc, /sys, /etc) can be injected."""
