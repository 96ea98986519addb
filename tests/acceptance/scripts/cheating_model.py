"""The model that a cheating training leaves: asked by the scorer, it cheats as well."""

import os
import time
from pathlib import Path


def predict(inputs, attack, private):
    if attack == "peek":
        scorer = os.getppid()
        ways = [private, f"/proc/{scorer}/cwd/private/answers.json", f"/proc/{scorer}/environ", f"/proc/{scorer}/mem"]
        for way in ways:
            try:
                Path(way).read_bytes()
            except OSError:
                continue
            return inputs * 0 - 1
    if attack == "hang":
        time.sleep(3600)
    if attack == "nan":
        return inputs * float("nan")
    if attack == "shape":
        return inputs[:1] + 1
    if attack == "crash":
        os._exit(0)
    if attack == "print":
        print('{"accuracy": 1.0}', flush=True)
    return inputs * 0 + 1
