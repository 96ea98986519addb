"""`chat.yaml` in the home: which model answers in chats that belong to no session, or whose session has none.

model: {name: qwen3-32b, base_url: http://127.0.0.1:8000/v1, context_tokens: 32768}
ask_above_device_minutes: 10
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from agent.task import Model
from agent.task_file import DocumentError, explained, read_text, read_yaml
from agent.task_part import TaskPart

FILE = "chat.yaml"


class ChatSettingsError(DocumentError):
    what = "settings of chats"
    keys = "model"


class ChatSettings(TaskPart):
    model: Model | None = None
    """None: chats without a session know commands alone."""
    ask_above_device_minutes: float = Field(default=10.0, ge=0, allow_inf_nan=False)
    """What one action is expected to cost before a person is asked, in chats without a session."""


def chat_settings(home: Path) -> ChatSettings:
    """As the file says; the defaults where there is none.

    Raises:
        ChatSettingsError: it can not be used; the message says what to change.
    """
    path = home / FILE
    if not path.exists():
        return ChatSettings()
    data = read_yaml(read_text(path, ChatSettingsError), path, ChatSettingsError)
    try:
        settings = ChatSettings.model_validate(data)
    except ValidationError as error:
        raise ChatSettingsError(path, explained(error.errors(), data, ChatSettings)) from error
    model = settings.model
    if model is None or model.key_file is None:
        return settings
    key_file = (home.resolve() / Path(model.key_file).expanduser()).absolute()
    return settings.model_copy(update={"model": model.model_copy(update={"key_file": str(key_file)})})
