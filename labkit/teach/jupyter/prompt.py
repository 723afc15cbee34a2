"""The connection between a page and its kernel, with every message sent at once.

Jupyter's server leaves Nagle's algorithm on for it: a message that follows another one waits until the browser's
machine has confirmed the first, and that confirms late, after about 40 ms. An action in a live session is answered by
three messages in a row, so that was most of what a learner waited for.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Jupyter's own connection to a page, with Nagle's algorithm off (TCP_NODELAY): every message is sent at once."""

    def connect(self) -> Any:
        """Switches the algorithm off, then connects as the parent class does."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
