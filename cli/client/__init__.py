"""What every command needs: its context, how it fails, and one ask to the master over the local socket."""
