"""Words that mean nothing, two to three syllables of a consonant and a vowel each, some with a last consonant."""

import random


def word(draw: random.Random) -> str:
    syllables = [draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(draw.choice((2, 2, 3)))]
    return "".join(syllables) + draw.choice(["", "", "n", "l", "s"])
