"""Write the texts: notes of an invented laboratory, from a small grammar. `python -m charlm.make_data`

Each sentence holds something that is known only from earlier in it: a name that comes back, a sum, a bracket to be
closed. The three texts are drawn one after the other and share no sentence but by chance.
"""

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = {"data/train.txt": 60_000, "private/valid.txt": 40_000, "private/test.txt": 40_000}
SEED = 20261203

NAMES = ["mira", "oskar", "tamsin", "jorun", "pavel", "ludo", "esme", "kofi", "hanne", "rui"]
THINGS = ["beaker", "mirror", "kettle", "lantern", "magnet", "prism", "needle", "funnel", "bellows", "spindle"]
COLOURS = ["amber", "cobalt", "russet", "ivory", "violet", "olive"]
PLACES = ["shelf", "window", "stove", "cellar door", "long bench", "sink"]
DEEDS = [("heats", "heated"), ("turns", "turned"), ("weighs", "weighed"), ("polishes", "polished"), ("lifts", "lifted")]
TIMES = ["at dawn", "before noon", "after lunch", "at dusk", "by night"]


def sentence(draw: random.Random) -> str:
    name, other = draw.sample(NAMES, 2)
    thing, colour, place = draw.choice(THINGS), draw.choice(COLOURS), draw.choice(PLACES)
    now, then = draw.choice(DEEDS)
    a, b = draw.randrange(1, 50), draw.randrange(1, 50)
    return draw.choice(
        [
            f"{draw.choice(TIMES)} {name} {now} the {colour} {thing}, and {other} watches {name}.",
            f"{name} and {other} {then} a {thing} near the {place}; the {thing} is {colour} now.",
            f"the {thing} held {a} drops and then {b} more: {a} + {b} = {a + b}.",
            f"who {then} the {thing}? {name} ({colour} coat, by the {place}) did; {name} said so.",
            f"{name} wrote: [{thing} {a}, {colour}] on the list by the {place}.",
            f"if the {colour} {thing} is on the {place}, {other} has not {then} it.",
        ]
    )


def text(draw: random.Random, size: int) -> str:
    lines = []
    while sum(len(line) + 1 for line in lines) < size:
        lines.append(sentence(draw))
    return "\n".join(lines)[:size]


def main() -> None:
    draw = random.Random(SEED)
    for name, size in SIZES.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(text(draw, size))


if __name__ == "__main__":
    main()
