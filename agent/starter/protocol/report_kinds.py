"""The registry of reports: each says of what kind it ``is``."""

from agent.starter.protocol.codec import Kinds

report = Kinds("is")
