"""How sweeps and the runtime are started by the machine itself: lines of the crontab, units of systemd."""
