"""What listings say about jobs, hosts and queues, without layout. May import frame."""
