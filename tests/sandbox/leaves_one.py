"""Run inside a sealed job: ends, and leaves a process of another session, whose parent has ended. Prints its pid."""

from __future__ import annotations

import json
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(json.dumps(["left", os.getpid()]), flush=True)
        time.sleep(300)
    os._exit(0)
time.sleep(0.3)
