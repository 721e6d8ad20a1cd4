"""What the kernel gives: epoll, control groups, limits, process trees, files. May import protocol."""
