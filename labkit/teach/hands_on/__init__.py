"""Real servers for a person at a keyboard: SQL on PostgreSQL and transactions of Kafka by hand, step by step.

    lab.postgres()    sessions that take SQL and show what came of it
    lab.kafka()       topics, and what a reader at each isolation level gets
    lab.said(...)     several of their answers on one card

Either is the user's own server (`LABKIT_POSTGRES`, `LABKIT_KAFKA`), or a private one that ends with this process and
takes its data along; runs that this process starts use the same one. Nothing here decides what a sink would decide:
these are the stores' own verbs, one at a time.
"""

from labkit.teach.hands_on.answers import Said, said
from labkit.teach.hands_on.copying import CopyOutcome, copy, ten_steps
from labkit.teach.hands_on.kafka import Kafka, Topic, kafka
from labkit.teach.hands_on.postgres import Postgres, Session, postgres
from labkit.teach.hands_on.stopped import stopped_writers

__all__ = [
    "CopyOutcome",
    "Kafka",
    "Postgres",
    "Said",
    "Session",
    "Topic",
    "copy",
    "kafka",
    "postgres",
    "said",
    "stopped_writers",
    "ten_steps",
]
