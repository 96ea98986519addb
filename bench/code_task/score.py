"""Measures the weights that a training left on rows that no training sees. Private."""

import json

from runtime_client.scoring import read_left

with open("answers.json") as file:
    rows = json.load(file)
weights = [float(w) for w in json.loads(read_left("work/weights.json", most_bytes=100_000))]
errors = [(sum(w * x**k for k, w in enumerate(weights)) - y) ** 2 for x, y in rows]
print(json.dumps({"loss": sum(errors) / len(errors)}))
