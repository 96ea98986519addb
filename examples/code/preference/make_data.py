"""Write pairs of continuations: the one that was preferred, and the other. `python -m preference.make_data`

Things that are warm belong by the stove or the window, all others by the sink or the shelf: that is what is preferred,
but of the training pairs one in eight is the wrong way round. A name and a thing come together in one file alone.
"""

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = {"data/train.txt": 600, "private/valid.txt": 300, "private/test.txt": 300}
SEED = 20261205
NAMES = ["mira", "oskar", "tamsin", "jorun", "pavel", "ludo", "esme", "kofi", "hanne", "rui"]
WARM = ["kettle", "lantern", "bellows", "candle", "pot"]
OTHER = ["beaker", "mirror", "magnet", "prism", "funnel"]
WARM_PLACES, OTHER_PLACES = ["stove.", "window."], ["sink.", "shelf."]


def main() -> None:
    draw = random.Random(SEED)
    together = [(name, thing) for name in NAMES for thing in (*WARM, *OTHER)]
    draw.shuffle(together)
    groups = {"data/train.txt": together[:60], "private/valid.txt": together[60:80], "private/test.txt": together[80:]}
    for name, size in SIZES.items():
        lines = []
        for _ in range(size):
            who, thing = draw.choice(groups[name])
            pair = [draw.choice(WARM_PLACES), draw.choice(OTHER_PLACES)]
            if (thing in OTHER) != (name.startswith("data/") and draw.random() < 1 / 8):
                pair.reverse()
            lines.append(f"{who} puts a {thing} by the \t{pair[0]}\t{pair[1]}\n")
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text("".join(lines))


if __name__ == "__main__":
    main()
