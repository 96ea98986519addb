"""A chat as a model and tools would leave it, with all that can stand in one; text of jobs in it may be hostile."""

from __future__ import annotations

from agent.chat.entry import (
    AskPart,
    CallPart,
    Cite,
    EntryKind,
    Plot,
    ReplyPart,
    ResultPart,
    Series,
    Table,
    TroublePart,
    Victim,
)
from agent.store.chats import ChatStore
from agent.store.store import AgentStore

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> \x1b[31mred\x1b[0m \u202eturned'
RUN = "0123456789abcdef" * 2
REPLY = """**s1-t2** is the best so far: its loss is lower than that of s1-t1, and s9-t9 is nowhere to be found.

1. What was measured:
   - `s1-t2` ran on j1, MLflow run 0123456789abcdef0123456789abcdef
   - see the table

| trial | loss |
|---|--:|
| s1-t1 | 0.412 |
| s1-t2 | 0.398 |

```
python train.py --lr 0.1
```
"""


def told(store: AgentStore, *, asks_for_s: float | None = 600.0, strange: str = HOSTILE) -> str:
    """A chat about s1, with a strange text in all places; it waits for an answer unless `asks_for_s` is None."""
    chats = ChatStore(store)
    chat_id = chats.make("s1", by="ada").chat_id
    chats.say(chat_id, f"is s1-t2 really better? {strange}", by="ada")
    _call(chats, chat_id, "a", "compare_trials", {"one": "s1-t1", "other": "s1-t2"})
    curve = tuple((float(step), 1.0 / (1 + step)) for step in range(30))
    other = tuple((float(step), 1.2 / (1 + step)) for step in range(0, 30, 2))
    plot = Plot(
        title="loss",
        x_label="step",
        y_label="loss",
        series=(Series(name="s1-t2", points=curve), Series(name=strange or "s1-t1", points=other)),
    )
    table = Table(
        columns=("trial", "loss", strange or "note"), rows=(("s1-t2", 0.39812345, None), ("s1-t1", 0.412, strange))
    )
    part = ResultPart(call_id="a", tool="compare_trials", table=table, plot=plot)
    chats.add(chat_id, EntryKind.RESULT, part, f"better by 0.014, 95% [0.006, 0.021]\n{strange}")
    cites = (
        Cite(kind="trial", id="s1-t1"),
        Cite(kind="trial", id="s1-t2"),
        Cite(kind="job", id="j1"),
        Cite(kind="run", id=RUN),
    )
    reply = ReplyPart(cites=cites, unknown=("s9-t9",), model="qwen3-32b")
    chats.add(chat_id, EntryKind.REPLY, reply, REPLY + strange, by="qwen3-32b", ends_turn=True)
    chats.say(chat_id, "then run it five times more", by="ada")
    if asks_for_s is None:
        chats.add(chat_id, EntryKind.TROUBLE, TroublePart(code="no_answer"), "the endpoint is down", ends_turn=True)
        return chat_id
    arguments = {"trial": "s1-t2", "n": 5}
    _call(chats, chat_id, "b", "launch_replicates", arguments)
    ask = AskPart(
        call_id="b",
        tool="launch_replicates",
        arguments=arguments,
        device_seconds=9000.0,
        cost_usd=12.5,
        victims=(Victim(job_id="j7", what="night sweep of bob", lost_s=840.0),),
        why="it preempts others, and costs more than 10 device-minutes",
        expires_at=store.clock() + asks_for_s,
    )
    chats.add(chat_id, EntryKind.ASK, ask, "run s1-t2 on 5 fresh seeds")
    return chat_id


def long(store: AgentStore, n_turns: int) -> str:
    """A chat of so many turns, two entries each."""
    chats = ChatStore(store)
    chat_id = chats.make(None, by="ada").chat_id
    for turn in range(1, n_turns + 1):
        chats.say(chat_id, f"question {turn}", by="ada")
        chats.add(chat_id, EntryKind.REPLY, ReplyPart(), f"answer {turn}", by="model", ends_turn=True)
    return chat_id


def _call(chats: ChatStore, chat_id: str, call_id: str, tool: str, arguments: dict[str, object]) -> None:
    part = CallPart(call_id=call_id, tool=tool, arguments=arguments)
    words = " ".join(f"{name}={value}" for name, value in arguments.items())
    chats.add(chat_id, EntryKind.CALL, part, words, by="qwen3-32b")
