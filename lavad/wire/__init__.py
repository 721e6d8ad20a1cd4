"""The wire's messages and the core's records: the only room of lavad that knows ``proto.agent_pb2``.

May import the core. Rule: a field of a message bears the name of the record's field that it carries, so that most of a message is
read and written by name; what has another form on the wire is converted by hand, and a test finds what is forgotten.
"""
