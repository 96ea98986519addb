"""A training that cheats as its parameter `attack` says; what it learned is always the same."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--attack")
parser.add_argument("--private")
attack, private = vars(parser.parse_known_args()[0]).values()
left = {"attack": attack, "answer": 1, "stolen": {}}
LIE = "print('{\"accuracy\": 1.0}')\n"


def tried(path):
    try:
        return Path(path).read_text()
    except OSError as error:
        return error.errno


if attack == "read":
    ways = [private, f"/proc/1/root{private}", f"/proc/self/root{private}", f"/proc/{os.getppid()}/cwd/score.py"]
    ways += [
        "score.py",
        "private/answers.json",
        Path(private).parents[1] / "score.py",
        *Path("/").glob("**/answers.json"),
    ]
    left["stolen"] = {str(way): tried(way) for way in ways}
elif attack == "other":
    folder = Path.cwd().parents[1]
    left["stolen"] = {
        str(way): tried(way) for way in (*folder.glob("*/*/left.json"), folder / "j1" / "work" / "left.json")
    }
elif attack == "link":
    os.symlink(private, "left.json")
elif attack == "link folder":
    os.symlink(os.path.dirname(private), "more")
elif attack == "pipe":
    left["stolen"] = {"fifo": "made" if not subprocess.call(["mkfifo", "left.json"], stderr=-3) else 1}
elif attack == "huge":
    with open("left.json", "wb") as file:
        file.truncate(2**32)
elif attack == "plant":
    for folder in (".", os.environ["NIGHTLAB_CHECKPOINT_DIR"]):
        for name in ("numpy", "json", "sitecustomize", "usercustomize", "runtime_client", "score"):
            Path(folder, f"{name}.py").write_text(LIE)
        Path(folder, "planted.pth").write_text(f"import os; {LIE}")
elif attack == "background":
    later = "import time\nwhile True:\n time.sleep(0.5)\n open('left.json', 'w').write('[]')"
    subprocess.Popen([sys.executable, "-c", later], start_new_session=True, stdout=-3, stderr=-3)
elif attack == "metric":
    print(json.dumps({"accuracy": 1.0}))
if not os.path.lexists("left.json"):
    Path("left.json").write_text(json.dumps(left))
