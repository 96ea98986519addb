"""The virtual-time lab: whole research sessions and the real scheduler on pretended training, in seconds.

The real session loop with its real store (`agent`), and the real core of the runtime with the server's own way from
submissions and reports to events, rows and views (`runtime`); only time and training are pretended. Nothing is
started and no runtime is needed.
"""
