"""Which message a space-time diagram takes for received, and whom a step reaches, checked with the simulators."""

from labkit.sim.blueprint import play
from labkit.sim.rules import Event
from labkit.sim.trace import make
from labkit.view.narration import Story
from labkit.view.scene import Box, Channel, Place, Scene, slip
from labkit.view.spacetime import of_walk


def scenes(*queues: str) -> list[Scene]:
    boxes = (Box("a", 0, "a", ""), Box("b", 1, "b", ""))
    return [Scene(boxes, (Channel("way", "a", "b", tuple(map(slip, queue))),)) for queue in queues]


def flights(queues: list[str], places: list[Place]) -> list[tuple[int, int]]:
    diagram = of_walk(scenes(*queues), places, [""] * len(places))
    return sorted((flight.sent, flight.received) for flight in diagram.flights)


def test_of_equal_messages_the_one_sent_first_arrives_first():
    send, take = Place("a"), Place("b")
    assert flights(["", "x", "xx", "x", ""], [send, send, take, take]) == [(1, 3), (2, 4)]


def test_a_message_that_the_network_doubles_was_sent_once():
    network = Place("b", Event.DUPLICATE)
    assert flights(["", "x", "xx", "x", ""], [Place("a"), network, Place("b"), Place("b")]) == [(1, 3), (1, 4)]


def test_a_process_that_sends_a_message_again_sends_twice():
    again = Place("a", Event.DUPLICATE)
    assert flights(["", "x", "xx", "x", ""], [Place("a"), again, Place("b"), Place("b")]) == [(1, 3), (2, 4)]


def test_a_message_that_arrives_and_will_arrive_again_has_arrived():
    repeat = Place("b", Event.DUPLICATE)
    assert flights(["", "x", "x", ""], [Place("a"), repeat, Place("b")]) == [(1, 2), (1, 3)]


def test_a_step_knows_whose_state_it_changes():
    walk = play(make("kafka_log", {}), "begin(0) write(0)")
    assert "coordinator" in Story(walk).diagram().steps[-1].changes
