"""Folders that code which nobody has read may have made: of any depth, full of links. Standard library only.

`os.walk` and `shutil.rmtree` call themselves once a level, and end a program on a thousand of them.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class TooDeep(OSError):
    """Something lies deeper than a path can say (4096 bytes)."""


def walk(top: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder from `top` on, above those in it, with the names of what is no folder. No link is followed.

    What vanishes meanwhile, or can not be read, is passed over.

    Raises:
        TooDeep: after all that can be reached.
    """
    waiting, is_too_deep = [top], False
    while waiting:
        place = waiting.pop()
        names: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if _is_folder(entry):
                        waiting.append(entry.path)
                    else:
                        names.append(entry.name)
        except OSError as error:
            is_too_deep = is_too_deep or error.errno == errno.ENAMETOOLONG
            continue
        yield place, names
    if is_too_deep:
        raise TooDeep(errno.ENAMETOOLONG, "folders nested deeper than a path can say", top)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
