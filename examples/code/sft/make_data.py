"""Write the instructions and their answers, a character each. `python -m sft.make_data`

The words of the three files are drawn one after the other; no prompt is in two of them.
"""

import random
from pathlib import Path

from pretrained.words import word

HERE = Path(__file__).resolve().parent
SIZES = {"data/train.txt": 800, "private/valid.txt": 600, "private/test.txt": 600}
SEED = 20261204


def instruction(draw: random.Random) -> tuple[str, str]:
    it, number = word(draw), draw.randrange(10)
    return draw.choice(
        [
            (f"first of {it}: ", it[0]),
            (f"last of {it}: ", it[-1]),
            (f"second of {it}: ", it[1]),
            (f"{it} and {number}: ", str(number)),
            (f"{number} and {it}: ", it[0]),
        ]
    )


def main() -> None:
    draw, seen = random.Random(SEED), set()
    for name, size in SIZES.items():
        lines = []
        while len(lines) < size:
            prompt, answer = instruction(draw)
            if prompt not in seen:
                seen.add(prompt)
                lines.append(f"{prompt}\t{answer}\n")
        (HERE / name).write_text("".join(lines))


if __name__ == "__main__":
    main()
