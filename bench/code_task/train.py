"""Fixed: which rows, which seed, and where the weights go."""

import argparse
import json
from pathlib import Path

import model

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
rows = json.loads(Path("data.json").read_text())
Path("weights.json").write_text(json.dumps(model.train(rows, parser.parse_args().seed)))
