"""The changelog simulator: which actions are enabled in a state, and what each of them changes.

A query processes records and sends messages about its changing result. The messages travel in order into a log that
keeps them; but a message may be lost, repeated or overtaken. The consumer reads that log and keeps a table.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from labkit.sim.model import Action, Property, crash
from labkit.sim.models.changelog.claims import claims, is_settled, text
from labkit.sim.models.changelog.query import counted, messages, with_count
from labkit.sim.models.changelog.state import (
    PARAMETERS,
    TAKES_BACK,
    Consumer,
    Kind,
    Message,
    Query,
    State,
    Table,
    applied,
    has,
    settings,
    without,
)
from labkit.sim.parameters import Values
from labkit.sim.rules import Event, Rule, RuleModel, one_less


class Changelog(RuleModel[State]):
    """The simulator of a continuous query that counts words and sends every change of a count to a consumer's table."""

    name, version, parameters = "changelog", 1, PARAMETERS

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.settings = settings(values)

    def initial(self) -> State:
        """Return the initial state: no record is processed, and the table is empty."""
        return State(Query(is_up=True), Consumer(is_up=True), (), (), self.settings.budget)

    def actions(self, state: State) -> Sequence[Action]:
        enabled: list[Action] = []
        self._query_actions(state, enabled)
        if state.network:
            enabled.append(Action("arrive"))
        self._consumer_actions(state, enabled)
        if any(state.budget):
            self._wrong(state, enabled)
        return enabled

    def _query_actions(self, state: State, enabled: list[Action]) -> None:
        query = state.query
        if not query.is_up:
            enabled.append(Action("restart_query"))
            return
        if query.offset < len(self.settings.words):
            enabled.append(Action("process", query.offset))
        if state.budget.query_crashes and query.saved < query.offset:
            enabled.append(Action("checkpoint", query.offset))

    def _consumer_actions(self, state: State, enabled: list[Action]) -> None:
        consumer, policy = state.consumer, self.settings.position
        _, stored, is_up, position, has_deleted = consumer
        if not is_up:
            enabled.append(Action("restart"))
            return
        if policy == "after" and stored < position:
            enabled.append(Action("store_position", position))
        elif position < len(state.topic):
            if policy == "before" and stored == position:
                enabled.append(Action("store_position", position + 1))
            elif has_deleted:
                enabled.append(Action("insert", position))
            elif self._must_delete(consumer, state.topic[position]):
                enabled.append(Action("delete", position))
            else:
                enabled.append(Action("apply", position))

    def _must_delete(self, consumer: Consumer, message: Message) -> bool:
        return self.settings.deletes_first and message.kind is Kind.UPSERT and has(consumer.table, message.key)

    def _wrong(self, state: State, enabled: list[Action]) -> None:
        budget, network = state.budget, state.network
        is_done = is_settled(state) and state.furthest == len(self.settings.words)
        if budget.crashes and state.consumer.is_up and not is_done:
            enabled.append(Action("crash"))
        if budget.query_crashes and state.query.is_up and state.query.saved < state.query.offset:
            enabled.append(Action("crash_query"))
        if network and (self.settings.hits_any or network[0].kind in TAKES_BACK):
            if budget.losses:
                enabled.append(Action("lose"))
            if budget.repeats:
                enabled.append(Action("repeat"))
        if budget.swaps and self._can_swap(network):
            enabled.append(Action("overtake"))
        if budget.expiries and state.query.is_up:
            counts = dict(state.query.counts)
            enabled += [Action("expire", number) for number, key in enumerate(self.settings.keys) if key in counts]

    def _can_swap(self, network: tuple[Message, ...]) -> bool:
        if len(network) < 2:
            return False
        return self.settings.hits_any or any(message.kind in TAKES_BACK for message in network[:2])

    # The query and its messages.

    def _process(self, state: State, offset: int) -> State:
        saved, saved_counts, is_up, _, counts = state.query
        key = self.settings.words[offset]
        old = counted(counts, key)
        query = Query(saved, saved_counts, is_up, offset + 1, with_count(counts, key, old + 1))
        network = (*state.network, *messages(self.settings, key, old, offset))
        return State(query, state.consumer, network, state.topic, state.budget, max(state.furthest, offset + 1))

    def _checkpoint(self, state: State, _: int) -> State:
        query = state.query
        return state._replace(query=query._replace(saved=query.offset, saved_counts=query.counts))

    def _arrive(self, state: State, _: int) -> State:
        return _moved(state, state.network[1:], (*state.topic, state.network[0]))

    def _lose(self, state: State, _: int) -> State:
        return _moved(_spent(state, "losses"), state.network[1:], state.topic)

    def _repeat(self, state: State, _: int) -> State:
        return _moved(_spent(state, "repeats"), state.network, (*state.topic, state.network[0]))

    def _overtake(self, state: State, _: int) -> State:
        first, second, *rest = state.network
        return _moved(_spent(state, "swaps"), (first, *rest), (*state.topic, second))

    def _expire(self, state: State, number: int) -> State:
        query = state.query
        counts = with_count(query.counts, self.settings.keys[number], 0)
        return _spent(state, "expiries")._replace(query=query._replace(counts=counts))

    def _crash_query(self, state: State, _: int) -> State:
        return _spent(state, "query_crashes")._replace(query=crash(state.query))

    def _restart_query(self, state: State, _: int) -> State:
        saved, saved_counts, *_rest = state.query
        return state._replace(query=Query(saved, saved_counts, is_up=True, offset=saved, counts=saved_counts))

    # The consumer.

    def _read(self, state: State, position: int) -> State:
        return self._read_on(state, applied(state.consumer.table, state.topic[position], owes=self.settings.owes))

    def _delete(self, state: State, position: int) -> State:
        table = without(state.consumer.table, state.topic[position].key)
        stored = position + 1 if self.settings.broken == "stored_at_delete" else state.consumer.stored
        consumer = Consumer(table, stored, is_up=True, position=position, has_deleted=True)
        return state._replace(consumer=consumer)

    def _read_on(self, state: State, table: Table) -> State:
        query, (_, stored, is_up, position, _), network, topic, budget, furthest = state
        if self.settings.position == "with_table":
            stored = position + 1
        return State(query, Consumer(table, stored, is_up, position + 1), network, topic, budget, furthest)

    def _store_position(self, state: State, position: int) -> State:
        return state._replace(consumer=state.consumer._replace(stored=position))

    def _crash(self, state: State, _: int) -> State:
        return _spent(state, "crashes")._replace(consumer=crash(state.consumer))

    def _restart(self, state: State, _: int) -> State:
        table, stored, *_rest = state.consumer
        return state._replace(consumer=Consumer(table, stored, is_up=True, position=stored))

    def properties(self) -> Sequence[Property[State]]:
        return claims(self.settings)

    def text(self, state: State) -> str:
        return text(state)

    def words(self, action: Action) -> Mapping[str, object]:
        """Return the values of a sentence's placeholders: `word`, the word that a record contains, and `key`."""
        words, keys, which = self.settings.words, self.settings.keys, action.which
        return {"word": _at(words, which), "key": _at(keys, which)}

    rules: ClassVar[dict[str, Rule[State]]] = {
        "process": Rule(_process, "The query counts record {which} ({word}) and sends what it changes."),
        "checkpoint": Rule(_checkpoint, "The query saves its offset {which} and its counts.", on_cue=True),
        "restart_query": Rule(
            _restart_query,
            "The query starts again from its checkpoint and will repeat the messages sent since then.",
            Event.RESTART,
        ),
        "arrive": Rule(_arrive, "The next message arrives in the log."),
        "apply": Rule(_read, "The consumer reads message {which} and changes its table."),
        "delete": Rule(
            _delete,
            "The consumer reads message {which} and deletes the old row of its key, to insert the new one next.",
        ),
        "insert": Rule(_read, "The consumer inserts the new row of message {which}."),
        "store_position": Rule(_store_position, "The consumer stores position {which}."),
        "restart": Rule(
            _restart, "The consumer starts again from its table and the position that it has stored.", Event.RESTART
        ),
        "crash": Rule(_crash, "The consumer dies; only its table and its stored position are left.", Event.CRASH),
        "crash_query": Rule(_crash_query, "The query dies; only its checkpoint is left.", Event.CRASH),
        "lose": Rule(_lose, "The next message is lost.", Event.DROP),
        "repeat": Rule(_repeat, "The next message arrives, and will arrive once more.", Event.DUPLICATE),
        "overtake": Rule(_overtake, "The message after the next one arrives first.", Event.REORDER),
        "expire": Rule(_expire, "The query forgets the count of {key}: its state has expired.", Event.TIMEOUT),
    }


def _at(words: tuple[str, ...], which: int) -> str:
    return words[which] if 0 <= which < len(words) else ""


def _moved(state: State, network: tuple[Message, ...], topic: tuple[Message, ...]) -> State:
    query, consumer, _, _, budget, furthest = state
    return State(query, consumer, network, topic, budget, furthest)


def _spent(state: State, fault: str) -> State:
    return state._replace(budget=one_less(state.budget, fault))
