"""The small languages and values that all else is made of: ids, ranges, times, windows, dependencies, states. Imports no
other room."""
