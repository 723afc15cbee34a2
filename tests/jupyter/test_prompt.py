"""Messages between a page and its kernel are sent at once, each of them."""

import json

import pytest
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from traitlets import import_item

from labkit.teach.jupyter import SEARCHED
from labkit.teach.jupyter.prompt import PromptConnection


class Handler:
    """Stands where the page's connection stands."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def set_nodelay(self, value: bool) -> None:
        self.told.append(value)


def test_no_message_waits_for_the_confirmation_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Handler()
    monkeypatch.setattr(ZMQChannelsWebsocketConnection, "connect", lambda _: handler.told.append("connected"))
    monkeypatch.setattr(PromptConnection, "websocket_handler", handler)
    PromptConnection.connect(PromptConnection.__new__(PromptConnection))
    assert handler.told == [True, "connected"]


def test_the_settings_name_this_connection() -> None:
    path = SEARCHED["JUPYTER_CONFIG_PATH"] / "jupyter_server_config.json"
    named = json.loads(path.read_text(encoding="utf-8"))["ServerApp"]["kernel_websocket_connection_class"]
    assert import_item(named) is PromptConnection
