"""The agent's stream to the master, and commands relayed for users of this host. May import launch and below."""
