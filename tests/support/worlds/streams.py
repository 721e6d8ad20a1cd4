"""What a host gets on its stream."""

from __future__ import annotations

from lavad.hosts.sessions import Session
from proto import agent_pb2 as pb


def written(session: Session) -> list[pb.ToAgent]:
    """The messages that wait on the stream, which are written now."""
    messages: list[pb.ToAgent] = []
    while not session.outgoing.empty():
        sent = session.outgoing.get_nowait()
        assert sent is not None
        messages.append(pb.ToAgent.FromString(sent.message))
        session.was_written(sent)
    return messages


def texts_and_orders(session: Session) -> tuple[list[pb.JobText], list[pb.Order]]:
    """The same, in order."""
    messages = written(session)
    return [text for one in messages for text in one.orders.texts], [order for one in messages for order in one.orders.orders]
