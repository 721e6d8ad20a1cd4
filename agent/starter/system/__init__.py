"""What the kernel gives: epoll, control groups, limits, process trees, files. Imports no other room."""
