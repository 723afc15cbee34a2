"""Name a message to a server by its first bytes: a Kafka request, an SQL statement, an HTTP or Redis verb.

Clients that poll at intervals (for metadata, or with heartbeats) send a different number of messages in every run, so
only names show which messages of two runs correspond. A message that is not recognised has no name. Sources: Kafka's
protocol guide (API keys); PostgreSQL's "Message Formats"; RFC 9110; RESP.
"""

import re

_STORING = {
    0: "Produce", 8: "OffsetCommit", 19: "CreateTopics", 20: "DeleteTopics", 21: "DeleteRecords",
    22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 28: "TxnOffsetCommit",
    37: "CreatePartitions", 42: "DeleteGroups",
}  # fmt: skip
_ASKING = {
    1: "Fetch", 2: "ListOffsets", 3: "Metadata", 9: "OffsetFetch", 10: "FindCoordinator", 11: "JoinGroup",
    12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup", 15: "DescribeGroups", 16: "ListGroups", 17: "SaslHandshake",
    18: "ApiVersions", 23: "OffsetForLeaderEpoch", 32: "DescribeConfigs", 36: "SaslAuthenticate",
    60: "DescribeCluster", 65: "DescribeTransactions", 66: "ListTransactions", 68: "ConsumerGroupHeartbeat",
    71: "GetTelemetrySubscriptions", 72: "PushTelemetry", 75: "DescribeTopicPartitions",
}  # fmt: skip
KAFKA = _STORING | _ASKING

ASKING = frozenset(_ASKING.values())
"""Kafka requests that store nothing: a kill before such a request has the outcome of a kill before the next call."""

_LATEST_VERSION = 40
_HTTP = re.compile(rb"(GET|HEAD|POST|PUT|PATCH|DELETE) \S")
_REDIS = re.compile(rb"\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n")
_SQL = re.compile(rb"\s*([A-Za-z]+)")
_POSTGRES = {
    "B": "Bind", "C": "Close", "D": "Describe", "E": "Execute", "H": "Flush", "S": "Sync", "X": "Terminate",
    "d": "CopyData", "c": "CopyDone", "f": "CopyFail",
}  # fmt: skip
_STARTUP, _ENCRYPTION = 196608, 80877103
"""The codes in PostgreSQL's first message: protocol 3.0, and the request for TLS."""


def word(head: bytes, size: int) -> str:
    """Return the type of a message to a server, such as `Produce` for Kafka; empty if the type is not recognised.

    `head` has the first bytes of the message, and `size` is the length of the whole message in bytes.
    """
    if match := _HTTP.match(head):
        return match[1].decode()
    if match := _REDIS.match(head):
        return match[1].decode().upper()
    return _kafka(head, size) or _postgres(head, size)


def _kafka(head: bytes, size: int) -> str:
    if len(head) < 8 or int.from_bytes(head[:4]) != size - 4:
        return ""
    version = int.from_bytes(head[6:8])
    key = int.from_bytes(head[4:6])
    return KAFKA.get(key, "") if version <= _LATEST_VERSION else ""


def _postgres(head: bytes, size: int) -> str:
    if len(head) == 8 == size and int.from_bytes(head[4:8]) == _ENCRYPTION:
        return "SSLRequest"
    if len(head) >= 8 and int.from_bytes(head[:4]) == size:
        return "Startup" if int.from_bytes(head[4:8]) == _STARTUP else ""
    kind, length = head[:1].decode("latin-1"), int.from_bytes(head[1:5])
    if len(head) < 5 or not 4 <= length < size:
        return ""
    if kind in ("Q", "P"):
        text = head[5:] if kind == "Q" else head[5:].partition(b"\0")[2]
        statement = _SQL.match(text)
        return statement[1].decode().upper() if statement else ""
    return _POSTGRES.get(kind, "")
