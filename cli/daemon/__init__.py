"""The life of a daemon: start, main loop, stop, and its messages to systemd."""
