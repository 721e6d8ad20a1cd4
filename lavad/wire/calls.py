"""The calls that agents make, as gRPC has to know them, and what answers a command."""

from __future__ import annotations

import grpc

from proto import agent_pb2 as pb
from proto import agent_pb2_grpc


def command_frame(frame: bytes) -> pb.CommandFrame:
    """A piece of the answer to a command."""
    return pb.CommandFrame(frame=frame)


def calls_of(servicer: agent_pb2_grpc.AgentsServicer) -> grpc.GenericRpcHandler[pb.FromAgent, bytes]:
    """As the generated code has it, but that the messages of a host's stream are bytes already."""
    calls = {
        "Session": grpc.stream_stream_rpc_method_handler(servicer.Session, pb.FromAgent.FromString),
        "Command": grpc.unary_stream_rpc_method_handler(
            servicer.Command, pb.CommandFrame.FromString, pb.CommandFrame.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler(pb.DESCRIPTOR.services_by_name["Agents"].full_name, calls)
