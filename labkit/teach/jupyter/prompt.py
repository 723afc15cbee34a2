"""Connect a page with its kernel so that every message is sent at once.

Jupyter's server leaves Nagle's algorithm on: a message that follows another one waits until the browser's machine has
acknowledged the first, about 40 ms later. A live session answers an action with three messages in a row, so that delay
was most of a learner's waiting time.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Jupyter's WebSocket connection with TCP_NODELAY, so that the kernel's messages reach the page without delay."""

    def connect(self) -> Any:
        """Set TCP_NODELAY on the socket, then connect as the parent class does."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
