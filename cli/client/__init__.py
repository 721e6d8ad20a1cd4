"""What commands share: context, how they fail, LSF's single-dash options, and one ask to the master over the local socket."""
