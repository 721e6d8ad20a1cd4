"""What an agent would send to its starter, kept instead."""

from __future__ import annotations

from agent.starter.protocol.orders import Order
from agent.starter.protocol.part import PartSpec
from agent.starter_client.outgoing import Outgoing


class StarterOrders(Outgoing):
    """``got``: orders other than starts; ``begun``: uids of parts that are to start; ``names``: kinds of all, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[Order] = []
        self.begun: list[str] = []
        self.names: list[str] = []

    def put(self, order: Order) -> None:
        self.got.append(order)
        self.names.append(type(order).__name__)

    def start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        self.begun.append(part.uid)
        self.names.append("Start")
