"""What may be chosen of the changelog, and which choices exclude each other. Nothing here runs."""

from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.sim.model import Word
from labkit.sim.models.changelog.parts import Budget
from labkit.sim.parameters import Choice, Parameter, Values, Whole, Words

VERSION = 1


class Encoding(Word):
    """How changes of a table become messages."""

    APPEND = "append"
    RETRACT = "retract"
    UPSERT = "upsert"


PARAMETERS: dict[str, Parameter] = {
    "encoding": Choice(
        "How changes are sent: append (rows are only added: the history of each count), retract (the old row is taken "
        "back, the new one added), or upsert (the new row replaces that of its key).",
        "retract",
        tuple(each.value for each in Encoding),
    ),
    "words": Words("The input, one word a record.", "hello-world-hello"),
    "at_most": Whole("Only keys with at most this count are in the result (HAVING); 0: all.", 0, 0, 3),
    "position": Choice(
        "When the consumer stores its position: in one step with its table, or in a step of its own before or after.",
        "with_table",
        ("with_table", "before", "after"),
    ),
    "writes": Choice(
        "How the consumer replaces a row: in one step (upsert), or in two (delete_insert).",
        "upsert",
        ("upsert", "delete_insert"),
    ),
    "unknown": Choice(
        "A retraction of a row that is not there is ignored, or owed: the row that comes later is taken back.",
        "ignored",
        ("ignored", "owed"),
    ),
    "hits": Choice(
        "Which messages can be lost, repeated or overtaken: any, or retractions and deletes only.",
        "any",
        ("any", "retractions"),
    ),
    "crashes": Whole("How many crashes of the consumer there may be.", 1, 0, 2),
    "query_crashes": Whole("How many crashes of the query there may be; it then replays from its checkpoint.", 0, 0, 2),
    "losses": Whole("How many messages may be lost.", 0, 0, 2),
    "repeats": Whole("How many messages may come twice.", 0, 0, 2),
    "swaps": Whole("How many messages may overtake the one before them.", 0, 0, 2),
    "expiries": Whole("How often the query may forget the count of a key (state expiry).", 0, 0, 1),
    "broken": Choice(
        "Which rule is broken: add_only (a change is sent without its retraction), retract_new (the new row is taken "
        "back in place of the old one), no_delete (an upsert stream says nothing when a key leaves the result), "
        "stored_at_delete (a consumer that deletes and inserts stores its position with the delete).",
        "nothing",
        ("nothing", "add_only", "retract_new", "no_delete", "stored_at_delete"),
    ),
}


class Settings(NamedTuple):
    """The parameters, understood."""

    encoding: Encoding
    words: tuple[str, ...]
    at_most: int
    position: str
    deletes_first: bool
    owes: bool
    hits_any: bool
    budget: Budget
    broken: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The different words, in the order in which they first come."""
        return tuple(dict.fromkeys(self.words))

    def shows(self, count: int) -> bool:
        """Whether a key with this count is in the result."""
        return count > 0 and not (self.at_most and count > self.at_most)


def settings(values: Values) -> Settings:
    """The parameters, understood. Raises `InvalidInput` where two of them exclude each other."""
    encoding = Encoding(str(values["encoding"]))
    if encoding is Encoding.APPEND and values["at_most"]:
        raise InvalidInput(
            f"at_most={values['at_most']}: a key that leaves the result must be taken back, and an append-only stream "
            "cannot; set encoding=retract or encoding=upsert."
        )
    return Settings(
        encoding=encoding,
        words=tuple(str(values["words"]).split("-")),
        at_most=int(values["at_most"]),
        position=str(values["position"]),
        deletes_first=values["writes"] == "delete_insert",
        owes=values["unknown"] == "owed",
        hits_any=values["hits"] == "any",
        budget=Budget(*(int(values[name]) for name in Budget._fields)),
        broken=str(values["broken"]),
    )
