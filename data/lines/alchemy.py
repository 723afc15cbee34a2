"""SQLAlchemy on SQLite: the core and a session."""

from sqlalchemy import Integer, create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Row(Base):
    __tablename__ = "rows"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)


engine = create_engine("sqlite:///rows.db")
Base.metadata.create_all(engine)  # effect: rows.db*
with engine.begin() as connection:  # effect: rows.db*
    connection.execute(text("INSERT INTO rows VALUES (1)"))  # effect: rows.db*
with Session(engine) as session:
    session.add(Row(id=2))
    session.commit()  # effect: rows.db*
